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

// signer creates the same signatures as "cosign sign-blob --key".
type signer struct {
	key *ecdsa.PrivateKey
}

// signerOf reads a private key from "cosign generate-key-pair" and decrypts it with the password in COSIGN_PASSWORD. It returns nil if path is
// empty.
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

// file writes the signature of a file to path.sig.
func (s *signer) file(path string) error {
	content, err := os.ReadFile(path) //nolint:gosec // written before
	if err != nil {
		return err
	}
	signature, err := s.signature(content)
	if err != nil {
		return err
	}
	return os.WriteFile(path+".sig", []byte(signature), 0o644) //nolint:gosec // for all to read
}

func (s *signer) signature(of []byte) (string, error) {
	digest := sha256.Sum256(of)
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, digest[:])
	return base64.StdEncoding.EncodeToString(signature), err
}

// writePublicKey writes the public key that verifies the signatures.
func (s *signer) writePublicKey(path string) error {
	der, err := x509.MarshalPKIXPublicKey(&s.key.PublicKey)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o644) //nolint:gosec // for all to read
}

// signatureType is the media type of the payload that cosign signs for an image, signatureAnnotation has its signature, see
// https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md.
const (
	signatureType       types.MediaType = "application/vnd.dev.cosign.simplesigning.v1+json"
	signatureAnnotation string          = "dev.cosignproject.cosign/signature"
)

// push pushes the signature of an image to the tag at which "cosign verify --key" expects it. The image need not be in the registry yet.
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
	signature, err := s.signature(says)
	if err != nil {
		return err
	}
	signed, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), mutate.Addendum{
		Layer: static.NewLayer(says, signatureType), Annotations: map[string]string{signatureAnnotation: signature},
	})
	if err != nil {
		return err
	}
	return pushImage(ctx, image.Context().Tag(digest.Algorithm+"-"+digest.Hex+".sig"), signed)
}
