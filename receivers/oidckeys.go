package receivers

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/lru"
)

// errKeys wraps neither errUnverified nor errMalformed, because the token may be valid and the sender must try again.
var errKeys = errors.New(msgKeysUnavailable)

// issuers stores the issuers by URL. They remain when a spec changes.
var (
	issuers   = lru.New(maxIssuers)
	issuersMu sync.Mutex
)

// issuerOf returns the issuer with a URL. It always returns the same issuer for the same URL.
func issuerOf(url string) *issuer {
	issuersMu.Lock()
	defer issuersMu.Unlock()
	if known, ok := issuers.Get(url); ok {
		if i, ok := known.(*issuer); ok {
			return i
		}
	}
	i := &issuer{url: url}
	issuers.Add(url, i)
	return i
}

// issuer is an OpenID Connect issuer in a spec, with the keys that were last fetched.
type issuer struct {
	url    string
	flight singleflight.Group

	mu     sync.Mutex
	keys   *keySet
	failed time.Time
	err    error
}

// keySet contains the keys of an issuer and the time when they were requested.
type keySet struct {
	keys    []jose.JSONWebKey
	fetched time.Time
}

// youngerThan returns keys that are no older than maxAge. If necessary, it fetches them. Only one request is in progress at a time, and
// none is sent soon after a failed one.
func (i *issuer) youngerThan(ctx context.Context, maxAge time.Duration, now time.Time) (*keySet, error) {
	if keys, ok, err := i.known(maxAge, now); ok {
		return keys, err
	}
	// The fetch continues if its request is canceled, because other requests wait for the same keys.
	done := i.flight.DoChan("", func() (any, error) {
		if keys, ok, err := i.known(maxAge, now); ok {
			return keys, err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), oidcTimeout)
		defer cancel()
		keys, err := fetchKeys(ctx, i.url)
		i.mu.Lock()
		defer i.mu.Unlock()
		if err != nil {
			i.failed, i.err = now, err
			return nil, err
		}
		i.keys, i.err = &keySet{keys, now}, nil
		return i.keys, nil
	})
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%w in time: %s", errKeys, i.url)
	case result := <-done:
		keys, _ := result.Val.(*keySet)
		return keys, result.Err
	}
}

// known returns the cached keys, or the error of a recent request. It returns false if the keys must be fetched.
func (i *issuer) known(maxAge time.Duration, now time.Time) (*keySet, bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	// Compare absolute ages, because now may be earlier if a clock without a monotonic reading was set back.
	if i.keys != nil && now.Sub(i.keys.fetched).Abs() < maxAge {
		return i.keys, true, nil
	}
	if i.err != nil && now.Sub(i.failed).Abs() < oidcRetryInterval {
		return nil, true, i.err
	}
	return nil, false, nil
}

// keysAt provides the keys of an issuer for one token.
type keysAt struct {
	issuer *issuer
	now    time.Time
	// err is the reason why there are no keys. It is stored here, because the library converts returned errors to text.
	err error
}

// VerifySignature implements oidc.KeySet. If no key verifies the token, the keys are fetched once more, because the issuer may have
// published a new key.
func (k *keysAt) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(token, joseAlgorithms)
	if err != nil {
		return nil, err
	}
	var tried *keySet
	for _, maxAge := range []time.Duration{oidcRefreshInterval, oidcRetryInterval} {
		var set *keySet
		if set, k.err = k.issuer.youngerThan(ctx, maxAge, k.now); k.err != nil {
			return nil, k.err
		}
		if set == tried {
			break
		}
		tried = set
		for _, key := range set.keys {
			if id := jws.Signatures[0].Header.KeyID; id != "" && id != key.KeyID {
				continue
			}
			var payload []byte
			if k.err = keyWork.do(ctx, func() { payload, err = jws.Verify(&key) }); k.err != nil {
				return nil, k.err
			}
			if err == nil {
				return payload, nil
			}
		}
	}
	return nil, errors.New("no key verifies the token")
}

// joseAlgorithms are the algorithms of keys that an issuer can publish. They exclude none and HS*.
var joseAlgorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

func signingAlgorithms() []string {
	names := make([]string, len(joseAlgorithms))
	for i, algorithm := range joseAlgorithms {
		names[i] = string(algorithm)
	}
	return names
}

// oidcClient sends requests to issuers, as long as the context of a request permits. It bounds the responses, and follows no redirect to
// a host other than the host in the spec or in the discovery document.
var oidcClient = &http.Client{
	Transport: bounded{newTransport()},
	CheckRedirect: func(request *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > 3 || request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
			return errors.New("redirected too often or to another host")
		}
		return nil
	},
}

func newTransport() http.RoundTripper {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport
	}
	transport = transport.Clone()
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	return transport
}

// bounded bounds the bodies of responses.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxOIDCBytes)
	}
	return response, err
}

// fetchKeys fetches the keys of an issuer from the URL in its discovery document. It does not return the errors of the library, because
// they may contain parts of the response.
func fetchKeys(ctx context.Context, url string) ([]jose.JSONWebKey, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, oidcClient), url)
	var mismatch *oidc.IssuerMismatchError
	switch {
	case errors.As(err, &mismatch):
		return nil, fmt.Errorf(msgOtherIssuer, errKeys, url)
	case err != nil:
		return nil, fmt.Errorf(msgDiscoveryFailed, errKeys, url)
	}
	var document struct {
		KeysURL string `json:"jwks_uri"`
	}
	if err := provider.Claims(&document); err != nil {
		return nil, fmt.Errorf(msgNoKeysURI, errKeys, url)
	}
	if strings.HasPrefix(url, "https:") && !strings.HasPrefix(document.KeysURL, "https:") {
		return nil, fmt.Errorf(msgKeysHTTPS, errKeys, url)
	}
	keys, err := getKeys(ctx, document.KeysURL)
	if err != nil || len(keys) == 0 {
		return nil, fmt.Errorf(msgNoKeys, errKeys, url)
	}
	return keys, nil
}

// getKeys returns the public keys at a URL. It omits keys that are unsupported, too long, or not intended for signatures.
func getKeys(ctx context.Context, url string) ([]jose.JSONWebKey, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := oidcClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, errors.New(response.Status)
	}
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(data, &set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && key.IsPublic() && key.Valid() && key.Use != "enc" && !tooLong(&key) {
			keys = append(keys, key)
		}
	}
	if len(keys) > maxKeys {
		return nil, errors.New("too many keys")
	}
	return keys, nil
}

// tooLong returns whether a key is so long that verification takes much longer than usual. The author of a receiver chooses the issuer,
// and the issuer chooses the key.
func tooLong(key *jose.JSONWebKey) bool {
	public, ok := key.Key.(*rsa.PublicKey)
	return ok && public.N.BitLen() > maxRSABits
}
