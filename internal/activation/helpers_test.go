package activation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"maps"
	"math/big"
	"time"
)

var (
	start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	names = Names{Certificate: "web", Staged: "web-staged", Live: "web-tls"}
	us    = Identity{Fingerprint: "ours/activated", Certificate: "ours/activatedFrom"}
)

const day = 24 * time.Hour

// template of a certificate that is valid from one time after start to another.
func template(serial int64, from, until time.Duration) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "web"},
		NotBefore: start.Add(from), NotAfter: start.Add(until),
	}
}

// sign returns the data of a Secret with a certificate signed by issuer.
func sign(cert, issuer *x509.Certificate) map[string][]byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, issuer, key.Public(), key)
	if err != nil {
		panic(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return map[string][]byte{
		CertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		PrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// issue returns the data of a Secret with a certificate of its own issuer.
func issue(serial int64, from, until time.Duration) map[string][]byte {
	cert := template(serial, from, until)
	return sign(cert, cert)
}

// stagedSecret is a Secret as cert-manager writes it.
func stagedSecret(data map[string][]byte) *Secret {
	return &Secret{
		Type: TLSType, Data: data, Labels: map[string]string{certManagerLabel: "true"},
		Annotations: map[string]string{CertificateNameAnnotation: "web", "cert-manager.io/alt-names": "web"},
	}
}

// liveSecret is a Secret into which data was promoted.
func liveSecret(data map[string][]byte) *Secret {
	return &Secret{Type: TLSType, Data: maps.Clone(data), Annotations: map[string]string{
		us.Certificate: "web", us.Fingerprint: Fingerprint(data),
	}}
}

// with returns a changed copy of data.
func with(data map[string][]byte, key string, value []byte) map[string][]byte {
	data = maps.Clone(data)
	data[key] = value
	if value == nil {
		delete(data, key)
	}
	return data
}
