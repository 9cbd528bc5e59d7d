package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"

	"github.com/secure-systems-lab/go-securesystemslib/encrypted"
)

// signer signs as "cosign sign-blob --key" does.
type signer struct {
	key *ecdsa.PrivateKey
}

// signerOf reads a private key that "cosign generate-key-pair" has made, and that the password in COSIGN_PASSWORD decrypts. Without a file nothing
// is signed.
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
		return nil, fmt.Errorf("%s: it is no private key of cosign", path)
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
		return nil, fmt.Errorf("%s: it is a %T, cosign makes ECDSA keys", path, key)
	}
	return &signer{of}, nil
}

// file signs a file. The signature is beside it.
func (s *signer) file(path string) error {
	content, err := os.ReadFile(path) //nolint:gosec // written before
	if err != nil {
		return err
	}
	digest := sha256.Sum256(content)
	signature, err := ecdsa.SignASN1(rand.Reader, s.key, digest[:])
	if err != nil {
		return err
	}
	return os.WriteFile(path+".sig", []byte(base64.StdEncoding.EncodeToString(signature)), 0o644) //nolint:gosec // for all to read
}
