package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// signer creates signatures in the formats of "cosign sign-blob --key --bundle" and "cosign sign --key --new-bundle-format=false".
type signer struct {
	key *ecdsa.PrivateKey
}

// signerOf reads a private key from "cosign generate-key-pair" and decrypts it with the password in COSIGN_PASSWORD. It returns nil if path
// is empty.
func signerOf(path string) (*signer, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // nothing is signed
	}
	raw, err := os.ReadFile(path) //nolint:gosec // where the caller says
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(raw)
	if block == nil || block.Type != "ENCRYPTED SIGSTORE PRIVATE KEY" && block.Type != "ENCRYPTED COSIGN PRIVATE KEY" {
		return nil, fmt.Errorf("%s: must be a private key of cosign", path)
	}
	der, err := encrypted.Decrypt(block.Bytes, []byte(os.Getenv("COSIGN_PASSWORD")))
	if err != nil {
		return nil, fmt.Errorf("%s: COSIGN_PASSWORD does not decrypt it: %w", path, err)
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	of, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: must be an ECDSA key, not a %T", path, key)
	}
	return &signer{of}, nil
}

// sigstoreBundle is a signature with a hint to its key, as "cosign verify-blob --bundle" reads it, see
// https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_bundle.proto. The specification suggests the hash of the key as the
// hint.
type sigstoreBundle struct {
	MediaType            string `json:"mediaType"`
	VerificationMaterial struct {
		PublicKey struct {
			Hint []byte `json:"hint"`
		} `json:"publicKey"`
	} `json:"verificationMaterial"`
	MessageSignature struct {
		MessageDigest struct {
			Algorithm string `json:"algorithm"`
			Digest    []byte `json:"digest"`
		} `json:"messageDigest"`
		Signature []byte `json:"signature"`
	} `json:"messageSignature"`
}

const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// file writes the signature of a file to path.sigstore.json.
func (s *signer) file(path string) error {
	content, err := os.ReadFile(path) //nolint:gosec // written before
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		return err
	}
	key := sha256.Sum256(der)
	b := sigstoreBundle{MediaType: bundleType}
	b.VerificationMaterial.PublicKey.Hint = key[:]
	b.MessageSignature.MessageDigest.Algorithm = "SHA2_256"
	if b.MessageSignature.MessageDigest.Digest, b.MessageSignature.Signature, err = s.sign(content); err != nil {
		return err
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".sigstore.json", raw, 0o644) //nolint:gosec // for all to read
}

// sign returns the hash of content and its signature.
func (s *signer) sign(content []byte) (hash, signature []byte, err error) {
	sum := sha256.Sum256(content)
	signature, err = ecdsa.SignASN1(rand.Reader, s.key, sum[:])
	return sum[:], signature, err
}

// writePublicKey writes the public key that verifies the signatures.
func (s *signer) writePublicKey(path string) error {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644) //nolint:gosec // for all to read
}

// signatureType is the media type of the payload that cosign signs for an image, and signatureAnnotation has its signature, see
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
const (
	signatureType       types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation string          = "dev.cosignproject.cosign/signature"
)

// push pushes the signature of an image to the tag at which "cosign verify --key" expects it. The image need not be in the registry yet, so
// that the registry never has a version without a signature. All verifiers read this format. Many cannot read a bundle of an image, such as
// source-controller before https://github.com/fluxcd/source-controller/pull/1961.
func (s *signer) push(ctx context.Context, image name.Tag, of interface{ Digest() (v1.Hash, error) }) error {
	digest, err := of.Digest()
	if err != nil {
		return err
	}
	says, err := json.Marshal(map[string]any{
		"critical": map[string]any{
			"identity": map[string]string{"docker-reference": image.Context().Name()},
			"image":    map[string]string{"docker-manifest-digest": digest.String()},
			"type":     "cosign container image signature",
		},
		"optional": nil,
	})
	if err != nil {
		return err
	}
	_, signature, err := s.sign(says)
	if err != nil {
		return err
	}
	signed, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer: static.NewLayer(says, signatureType), Annotations: map[string]string{signatureAnnotation: base64.StdEncoding.EncodeToString(signature)},
	})
	if err != nil {
		return err
	}
	return pushImage(ctx, image.Context().Tag(digest.Algorithm+"-"+digest.Hex+".sig"), signed)
}
