package harness

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// pki has the certificates of a control plane.
type pki struct {
	dir string
	// serving is the certificate of the API server, which clients verify.
	serving []byte
	// ca signs the certificates of users.
	ca    *x509.Certificate
	caKey *ecdsa.PrivateKey
}

// newPKI writes the certificates and keys of an API server at an IP address into a folder.
func newPKI(dir, ip string) (*pki, error) {
	p := &pki{dir: dir}
	var err error
	if p.caKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if p.ca, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "users"}, p.caKey); err != nil {
		return nil, err
	}
	serving, servingKey, err := cert.GenerateSelfSignedCertKey(ip, []net.IP{net.ParseIP(ip)}, nil)
	if err != nil {
		return nil, err
	}
	p.serving = serving
	accounts, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return nil, err
	}
	return p, errors.Join(
		p.write("users.crt", pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: p.ca.Raw})),
		p.write("serving.crt", serving), p.write("serving.key", servingKey), p.write("accounts.key", accounts),
	)
}

func (p *pki) write(name string, content []byte) error {
	return os.WriteFile(p.path(name), content, 0o600)
}

func (p *pki) path(name string) string { return filepath.Join(p.dir, name) }

// user returns the certificate and the key of a user.
func (p *pki) user(name string, groups ...string) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name, Organization: groups},
		NotBefore: p.ca.NotBefore, NotAfter: p.ca.NotBefore.Add(100 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, p.ca, private.Public(), p.caKey)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed}), key, err
}
