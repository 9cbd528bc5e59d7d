package replicas

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// issuer is an OpenID Connect issuer on loopback, with a new key. Processes that the test starts later trust its certificate.
type issuer struct {
	*testing.T
	url string
	key jose.JSONWebKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{T: t, key: jose.JSONWebKey{Key: private, KeyID: "one", Algorithm: string(jose.ES256), Use: "sig"}}
	mux := http.NewServeMux()
	serve := func(path string, value func() any) {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(value()); err != nil {
				t.Error(err)
			}
		})
	}
	serve("/.well-known/openid-configuration", func() any {
		return map[string]any{"issuer": i.url, "jwks_uri": i.url + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}}
	})
	serve("/keys", func() any { return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{i.key.Public()}} })
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	i.url = server.URL
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", roots)
	return i
}

// token returns a token with the standard claims and additional ones.
func (i *issuer) token(claims map[string]any) string {
	i.Helper()
	now := time.Now()
	all := map[string]any{"iss": i.url, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	maps.Copy(all, claims)
	payload, err := json.Marshal(all)
	if err != nil {
		i.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: i.key}, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		i.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.Fatal(err)
	}
	return token
}
