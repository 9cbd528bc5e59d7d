package receivers

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// All tests share the keys, because generating them takes time.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	rsaOther = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey    = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	edKey    = sync.OnceValue(func() ed25519.PrivateKey {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return must(key, err)
	})
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// testIssuer is an OpenID Connect issuer on a loopback address.
type testIssuer struct {
	*httptest.Server

	mu          sync.Mutex
	keys        []any
	discoveries int
	keyRequests int
	// discovery and keySet replace the default responses, if they are set.
	discovery, keySet http.HandlerFunc
}

func newTestIssuer(t testing.TB, keys ...any) *testIssuer {
	t.Helper()
	i := &testIssuer{keys: keys}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.discoveries++
		instead := i.discovery
		i.mu.Unlock()
		if instead != nil {
			instead(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(i.document())
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		i.keyRequests++
		instead, keys := i.keySet, i.keys
		i.mu.Unlock()
		if instead != nil {
			instead(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": keys})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	// The port may be that of an issuer in an earlier test, whose keys are still cached.
	issuersMu.Lock()
	defer issuersMu.Unlock()
	issuers.Remove(i.URL)
	return i
}

// document returns the discovery document. We must not accept all of its algorithms.
func (i *testIssuer) document() map[string]any {
	return map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
}

func (i *testIssuer) change(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// asked returns the number of requests for the discovery document and for the keys.
func (i *testIssuer) asked() (discoveries, keyRequests int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.discoveries, i.keyRequests
}

func publicKey(id string, private crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: id, Key: private.Public(), Use: "sig"}
}

// standardKeys returns the public keys of an issuer. Two of them are of unsupported kinds.
func standardKeys() []any {
	return []any{
		map[string]any{"kty": "OKP", "crv": "X448", "kid": "unreadable", "x": "AAAA"},
		map[string]any{"kty": "EC", "crv": "secp256k1", "alg": "ES256K", "kid": "unreadable too", "x": "AA", "y": "AA"},
		publicKey("rsa", rsaKey()), publicKey("ec", ecKey()), publicKey("ed", edKey()),
	}
}

// claims returns claims that are valid at testNow. change overrides some of them, and removes those that are nil.
func (i *testIssuer) claims(change map[string]any) map[string]any {
	claims := map[string]any{
		"iss": i.URL, "sub": "repo:org/repo:ref:refs/heads/main", "aud": v1alpha1.DefaultOIDCAudience, "jti": "one",
		"iat": testNow.Add(-time.Minute).Unix(), "nbf": testNow.Add(-time.Minute).Unix(), "exp": testNow.Add(5 * time.Minute).Unix(),
		"repository": "org/repo", "ref": "refs/heads/main", "run_attempt": 1,
	}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

// token returns a token with signed claims.
func token(claims any, algorithm jose.SignatureAlgorithm, key any, headers map[string]any) string {
	options := &jose.SignerOptions{}
	for name, value := range headers {
		options.WithHeader(jose.HeaderKey(name), value)
	}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options))
	payload, ok := claims.([]byte)
	if !ok {
		payload = must(json.Marshal(claims))
	}
	return must(must(signer.Sign(payload)).CompactSerialize())
}

func kid(id string) map[string]any { return map[string]any{"kid": id} }

// provider returns a spec for the issuer that trusts one repository.
func (i *testIssuer) provider() v1alpha1.OIDCProvider {
	return v1alpha1.OIDCProvider{
		IssuerURL: i.URL,
		Variables: []v1alpha1.OIDCVariable{
			{Name: "owner", Expression: "claims.repository.split('/')[0]"},
			{Name: "isOurs", Expression: "vars.owner == 'org'"},
		},
		Validations: []v1alpha1.OIDCValidation{
			{Expression: "vars.isOurs == true", Message: "must be of org"},
			{Expression: "claims.ref == 'refs/heads/main'", Message: "must be of main"},
		},
	}
}

func oidcVerifier(t testing.TB, providers ...v1alpha1.OIDCProvider) *genericOIDC {
	t.Helper()
	v, err := newGenericOIDC(providers)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func withToken(token string) *incoming {
	return request(`{"reason":"smoke tests passed"}`, nil, "Authorization", "Bearer "+token)
}
