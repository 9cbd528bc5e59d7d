package activation

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Keys of a Secret of TLSType.
const (
	CertKey       = "tls.crt"
	PrivateKeyKey = "tls.key"
)

// Leaf holds the relevant fields of a certificate.
type Leaf struct {
	NotBefore, NotAfter time.Time
	// Serial is the serial number as openssl prints it.
	Serial string

	// temporary is true for the placeholder that cert-manager signs itself until the issuer has signed a certificate.
	temporary bool
}

// End returns NotAfter in RFC 3339.
func (l *Leaf) End() string { return l.NotAfter.UTC().Format(time.RFC3339) }

// Fingerprint returns a hash of all keys and values of a Secret.
func Fingerprint(data map[string][]byte) string {
	hash := sha256.New()
	write := func(b []byte) {
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		hash.Write(b)
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		write([]byte(key))
		write(data[key])
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// usable returns the certificate in the data of a Secret, or an error if no server could use it. The error continues a sentence that begins
// with the name of the Secret, and reveals no data.
func usable(data map[string][]byte) (*Leaf, error) {
	for _, key := range []string{CertKey, PrivateKeyKey} {
		if len(data[key]) == 0 {
			return nil, fmt.Errorf("has no %s", key)
		}
	}
	leaf, err := leafOf(data[CertKey])
	if err != nil {
		return nil, fmt.Errorf("has a %s that cannot be read", CertKey)
	}
	if _, err := tls.X509KeyPair(data[CertKey], data[PrivateKeyKey]); err != nil {
		return nil, fmt.Errorf("has a %s that does not match its %s", PrivateKeyKey, CertKey)
	}
	return leaf, nil
}

// leafOf parses the first certificate in a PEM chain, which is the server certificate.
func leafOf(chain []byte) (*Leaf, error) {
	for {
		block, rest := pem.Decode(chain)
		if block == nil {
			return nil, errors.New("no certificate")
		}
		if block.Type != "CERTIFICATE" {
			chain = rest
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		return &Leaf{
			NotBefore: cert.NotBefore, NotAfter: cert.NotAfter,
			Serial:    strings.ToUpper(hex.EncodeToString(cert.SerialNumber.Bytes())),
			temporary: cert.Subject.SerialNumber == "1234567890" && cert.Issuer.CommonName == "cert-manager.local",
		}, nil
	}
}
