package receivers

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// isUnavailable returns whether the sender must try again.
func isUnavailable(err error) bool {
	return errors.Is(err, errKeys) && !errors.Is(err, errUnverified) && !errors.Is(err, errMalformed)
}

// withTokenAt returns a request that is read some time after testNow, with a token that is valid then.
func withTokenAt(issuer *testIssuer, after time.Duration, key any, id string) *incoming {
	in := withToken(token(issuer.claims(map[string]any{"nbf": nil, "exp": testNow.Add(100 * time.Hour).Unix()}), jose.RS256, key, kid(id)))
	in.now = testNow.Add(after)
	return in
}

// TestIssuerKeys sends tokens some time after testNow. If a token has a change, the issuer is changed first.
func TestIssuerKeys(t *testing.T) {
	rotates := func(i *testIssuer) { i.keys = []any{publicKey("new", rsaOther())} }
	fails := func(i *testIssuer) {
		i.discovery = func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "internal error: password is hunter2", http.StatusInternalServerError)
		}
	}
	recovers := func(i *testIssuer) { i.discovery = nil }
	old, other := func() any { return rsaKey() }, func() any { return rsaOther() }
	type sent struct {
		after  time.Duration
		key    func() any
		id     string
		want   error // errKeys if the sender must try again
		change func(i *testIssuer)
	}
	for name, tc := range map[string]struct {
		discoveries int
		tokens      []sent
	}{
		"they may be rotated": {2, []sent{
			{0, old, "rsa", nil, nil}, {time.Second, other, "new", errUnverified, rotates}, {oidcRetryInterval, other, "new", nil, nil},
			{oidcRetryInterval + time.Second, old, "rsa", errUnverified, nil},
		}},
		"one that is withdrawn is good for nothing after a while": {2, []sent{
			{0, old, "rsa", nil, nil}, {oidcRefreshInterval - time.Second, old, "rsa", nil, rotates}, {oidcRefreshInterval, old, "rsa", errUnverified, nil},
		}},
		"names that are made up": {1, append(slices.Repeat([]sent{{0, other, "made up", errUnverified, nil}}, 50), sent{5 * time.Second, old, "rsa", nil, nil})},
		"an issuer that is down": {3, append(slices.Repeat([]sent{{0, old, "rsa", errKeys, fails}}, 20),
			sent{oidcRetryInterval - time.Second, old, "rsa", errKeys, recovers}, sent{oidcRetryInterval, old, "rsa", nil, nil},
			sent{-24 * time.Hour, old, "rsa", nil, nil}, // a clock that is set back must not lock out senders
		)},
		"an issuer that was down before the clock was set back": {2, []sent{{0, old, "rsa", errKeys, fails}, {-time.Hour, old, "rsa", nil, recovers}}},
		"an issuer that goes down": {1, []sent{
			{0, old, "rsa", nil, nil}, {time.Minute, other, "new", errKeys, func(i *testIssuer) { i.Close() }},
			{time.Minute, old, "rsa", nil, nil}, {oidcRefreshInterval, old, "rsa", errKeys, nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			issuer := newTestIssuer(t, publicKey("rsa", rsaKey()))
			for i, s := range tc.tokens {
				if s.change != nil {
					issuer.change(func() { s.change(issuer) })
				}
				_, err := oidcVerifier(t, issuer.provider()).verify(t.Context(), withTokenAt(issuer, s.after, s.key(), s.id))
				if !errors.Is(err, s.want) || s.want == nil && err != nil || errors.Is(s.want, errKeys) && (!isUnavailable(err) || strings.Contains(err.Error(), "hunter2")) {
					t.Fatalf("token %d: error is %v, want %v", i, err, s.want)
				}
			}
			if discoveries, keyRequests := issuer.asked(); discoveries != tc.discoveries || keyRequests > discoveries {
				t.Errorf("the issuer got %d requests for its document, want %d, and %d for its keys", discoveries, tc.discoveries, keyRequests)
			}
		})
	}
}

func TestHTTPSIssuerRequiresHTTPSKeys(t *testing.T) {
	plain := newTestIssuer(t, standardKeys()...)
	var keysURL string
	server := httptest.NewUnstartedServer(nil)
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/keys" {
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": standardKeys()})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": server.URL, "jwks_uri": keysURL})
	})
	server.StartTLS()
	defer server.Close()
	trusting, usual := bounded{server.Client().Transport}, oidcClient.Transport
	oidcClient.Transport = trusting
	defer func() { oidcClient.Transport = usual }()

	keysURL = plain.URL + "/keys"
	if _, err := fetchKeys(t.Context(), server.URL); !isUnavailable(err) {
		t.Errorf("keys without TLS: %v", err)
	}
	if _, asked := plain.asked(); asked != 0 {
		t.Error("they were asked for")
	}
	keysURL = server.URL + "/keys"
	if keys, err := fetchKeys(t.Context(), server.URL); err != nil || len(keys) != 3 {
		t.Errorf("keys with TLS: %d, %v", len(keys), err)
	}
}

func TestCachedKeysWorkWhileIssuerIsDown(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	verified(t, v, withTokenAt(issuer, 0, rsaKey(), "rsa"))
	issuer.Close()
	if _, err := v.verify(t.Context(), withTokenAt(issuer, time.Minute, rsaOther(), "new")); !isUnavailable(err) {
		t.Errorf("a key that may be new: %v", err)
	}
	verified(t, v, withTokenAt(issuer, time.Minute, rsaKey(), "rsa"))
	if _, err := v.verify(t.Context(), withTokenAt(issuer, oidcRefreshInterval, rsaKey(), "rsa")); !isUnavailable(err) {
		t.Errorf("keys that are too old: %v", err)
	}
}

func TestInvalidResponsesOfIssuerAreRefused(t *testing.T) {
	elsewhere := newTestIssuer(t, standardKeys()...)
	type change = func(i *testIssuer)
	discovers := func(document func(i *testIssuer) any) change {
		return func(i *testIssuer) {
			i.discovery = func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(document(i)) }
		}
	}
	writes := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
	}
	redirects := func(url string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, url, http.StatusFound) }
	}
	for _, test := range []struct {
		name   string
		change change
	}{
		{"a document of another issuer", discovers(func(*testIssuer) any { return elsewhere.document() })},
		{"a document of the issuer with a slash", discovers(func(i *testIssuer) any { return map[string]any{"issuer": i.URL + "/", "jwks_uri": i.URL + "/keys"} })},
		{"a document without keys", discovers(func(i *testIssuer) any { return map[string]any{"issuer": i.URL} })},
		{"a document whose keys are a file", discovers(func(i *testIssuer) any { return map[string]any{"issuer": i.URL, "jwks_uri": "file:///etc/passwd"} })},
		{"a document that is not JSON", func(i *testIssuer) { i.discovery = writes("<html>") }},
		{"a document that redirects to another host", func(i *testIssuer) { i.discovery = redirects(elsewhere.URL + "/.well-known/openid-configuration") }},
		{"keys that redirect to another host", func(i *testIssuer) { i.keySet = redirects(elsewhere.URL + "/keys") }},
		{"keys that redirect for ever", func(i *testIssuer) { i.keySet = redirects("/keys") }},
		{"no keys", func(i *testIssuer) { i.keys = []any{} }},
		{"keys with 404", func(i *testIssuer) { i.keySet = http.NotFound }},
		{"keys that are not JSON", func(i *testIssuer) { i.keySet = writes("{") }},
		{"keys for encryption only", func(i *testIssuer) {
			key := publicKey("rsa", rsaKey())
			key.Use = "enc"
			i.keys = []any{key}
		}},
		{"a secret key", func(i *testIssuer) { i.keys = []any{jose.JSONWebKey{KeyID: "rsa", Key: []byte("secret")}} }},
		{"a private key", func(i *testIssuer) { i.keys = []any{jose.JSONWebKey{KeyID: "rsa", Key: rsaKey()}} }},
		{"a key that takes seconds", func(i *testIssuer) {
			long := rsa.PublicKey{N: new(big.Int).SetBit(rsaKey().N, maxRSABits, 1), E: rsaKey().E}
			i.keys = []any{jose.JSONWebKey{KeyID: "rsa", Key: &long}}
		}},
		{"more keys than anybody has", func(i *testIssuer) {
			for range maxKeys {
				i.keys = append(i.keys, publicKey("rsa", rsaKey()))
			}
		}},
		{"a document larger than any", discovers(func(i *testIssuer) any {
			document := i.document()
			document["padding"] = strings.Repeat(" ", maxOIDCBytes)
			return document
		})},
		{"keys larger than any", func(i *testIssuer) {
			i.keys = []any{publicKey("rsa", rsaKey()), map[string]any{"kty": strings.Repeat("x", maxOIDCBytes)}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			issuer := newTestIssuer(t, standardKeys()...)
			issuer.change(func() { test.change(issuer) })
			hook, err := oidcVerifier(t, issuer.provider()).verify(t.Context(), withTokenAt(issuer, 0, rsaKey(), "rsa"))
			if hook != nil || !isUnavailable(err) {
				t.Errorf("error is %v", err)
			}
		})
	}
	if discoveries, keyRequests := elsewhere.asked(); discoveries+keyRequests != 0 {
		t.Errorf("the other host was asked %d times", discoveries+keyRequests)
	}
}

func TestRedirectOnSameHostIsFollowed(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	issuer.change(func() {
		issuer.keySet = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "" {
				http.Redirect(w, r, "/keys?v=2", http.StatusFound)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": issuer.keys})
		}
	})
	verified(t, oidcVerifier(t, issuer.provider()), withTokenAt(issuer, 0, rsaKey(), "rsa"))
}

// holdDiscovery makes an issuer block before it responds. arrived receives a value for each request.
func holdDiscovery(issuer *testIssuer) (arrived, release chan struct{}) {
	arrived, release = make(chan struct{}, 10), make(chan struct{})
	issuer.change(func() {
		issuer.discovery = func(w http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			select {
			case <-release:
				_ = json.NewEncoder(w).Encode(issuer.document())
			case <-r.Context().Done():
			}
		}
	})
	return arrived, release
}

func TestSlowIssuerIsRequestedOnceForAllWaiters(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	arrived, release := holdDiscovery(issuer)
	ctx, giveUp := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, err := v.verify(ctx, withTokenAt(issuer, 0, rsaKey(), "rsa"))
		gaveUp <- err
	}()
	select {
	case <-arrived:
	case err := <-gaveUp:
		t.Fatalf("the issuer is not asked: %v", err)
	}
	giveUp()
	if err := <-gaveUp; !isUnavailable(err) {
		t.Errorf("who gave up got %v", err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := v.verify(t.Context(), withTokenAt(issuer, 0, rsaKey(), "rsa")); err != nil {
				t.Errorf("who waited got %v", err)
			}
		})
	}
	close(release)
	all.Wait()
	if discoveries, keyRequests := issuer.asked(); discoveries != 1 || keyRequests != 1 {
		t.Errorf("issuer was asked %d and %d times", discoveries, keyRequests)
	}
}

func TestIssuerTimeoutIsShorterThanSenderTimeout(t *testing.T) {
	t.Parallel()
	issuer := newTestIssuer(t, standardKeys()...)
	holdDiscovery(issuer)
	ctx, cancel := context.WithTimeout(t.Context(), responseTimeout)
	defer cancel()
	_, err := oidcVerifier(t, issuer.provider()).verify(ctx, withTokenAt(issuer, 0, rsaKey(), "rsa"))
	if !isUnavailable(err) || ctx.Err() != nil {
		t.Errorf("error is %v, of the context %v", err, ctx.Err())
	}
}
