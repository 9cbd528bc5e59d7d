package receivers

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
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

// withTokenAt is a request that is read some time after testNow, with a token that is
// good by then.
func withTokenAt(issuer *testIssuer, after time.Duration, key any, id string) *incoming {
	in := withToken(token(issuer.claims(map[string]any{"nbf": nil, "exp": testNow.Add(100 * time.Hour).Unix()}), jose.RS256, key, kid(id)))
	in.now = testNow.Add(after)
	return in
}

func TestAnIssuerMayRotateItsKeys(t *testing.T) {
	issuer := newTestIssuer(t, publicKey("old", rsaKey()))
	v := oidcVerifier(t, issuer.provider())
	verified(t, v, withTokenAt(issuer, 0, rsaKey(), "old"))
	issuer.change(func() { issuer.keys = []any{publicKey("new", rsaOther())} })

	if _, err := v.verify(t.Context(), withTokenAt(issuer, time.Second, rsaOther(), "new")); !errors.Is(err, errUnverified) {
		t.Errorf("with keys that are a second old: %v", err)
	}
	verified(t, v, withTokenAt(issuer, oidcRetryInterval, rsaOther(), "new"))
	if _, err := v.verify(t.Context(), withTokenAt(issuer, oidcRetryInterval+time.Second, rsaKey(), "old")); !errors.Is(err, errUnverified) {
		t.Errorf("the old key: %v", err)
	}
}

func TestAKeyThatIsWithdrawnIsGoodForNothingAfterAWhile(t *testing.T) {
	issuer := newTestIssuer(t, publicKey("old", rsaKey()))
	v := oidcVerifier(t, issuer.provider())
	verified(t, v, withTokenAt(issuer, 0, rsaKey(), "old"))
	issuer.change(func() { issuer.keys = []any{publicKey("new", rsaOther())} })
	verified(t, v, withTokenAt(issuer, oidcRefreshInterval-time.Second, rsaKey(), "old"))
	if _, err := v.verify(t.Context(), withTokenAt(issuer, oidcRefreshInterval, rsaKey(), "old")); !errors.Is(err, errUnverified) {
		t.Errorf("error is %v", err)
	}
}

func TestNamesOfKeysThatAreMadeUpDoNotHammerTheIssuer(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	for range 50 {
		if _, err := v.verify(t.Context(), withTokenAt(issuer, 0, rsaOther(), "made up")); !errors.Is(err, errUnverified) {
			t.Fatal(err)
		}
	}
	if discoveries, keyRequests := issuer.asked(); discoveries != 1 || keyRequests != 1 {
		t.Errorf("issuer was asked %d and %d times", discoveries, keyRequests)
	}
	// A good token needs no fetch, however many made-up ones there were.
	verified(t, v, withTokenAt(issuer, 5*time.Second, rsaKey(), "rsa"))
}

func TestKeysAreKeptWhenTheSpecIsCompiledAgain(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	for range 3 {
		verified(t, oidcVerifier(t, issuer.provider()), withTokenAt(issuer, 0, rsaKey(), "rsa"))
	}
	if discoveries, keyRequests := issuer.asked(); discoveries != 1 || keyRequests != 1 {
		t.Errorf("issuer was asked %d and %d times", discoveries, keyRequests)
	}
}

func TestAnIssuerThatIsDownIsNotHammeredAndComesBack(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	const secret = "internal error: password is hunter2"
	issuer.change(func() {
		issuer.discovery = func(w http.ResponseWriter, _ *http.Request) { http.Error(w, secret, http.StatusInternalServerError) }
	})
	for range 20 {
		_, err := v.verify(t.Context(), withTokenAt(issuer, 0, rsaKey(), "rsa"))
		if !isUnavailable(err) || strings.Contains(err.Error(), "hunter2") {
			t.Fatalf("error is %v", err)
		}
	}
	if discoveries, _ := issuer.asked(); discoveries != 1 {
		t.Errorf("issuer was asked %d times", discoveries)
	}
	issuer.change(func() { issuer.discovery = nil })
	if _, err := v.verify(t.Context(), withTokenAt(issuer, oidcRetryInterval-time.Second, rsaKey(), "rsa")); !isUnavailable(err) {
		t.Errorf("asked again too early: %v", err)
	}
	verified(t, v, withTokenAt(issuer, oidcRetryInterval, rsaKey(), "rsa"))
	// A clock that is set back must not lock out senders.
	verified(t, v, withTokenAt(issuer, -24*time.Hour, rsaKey(), "rsa"))
}

func TestFailedIssuerIsRetriedAfterClockWasSetBack(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	issuer.change(func() { issuer.discovery = http.NotFound })
	if _, err := v.verify(t.Context(), withTokenAt(issuer, 0, rsaKey(), "rsa")); !isUnavailable(err) {
		t.Fatalf("error is %v", err)
	}
	issuer.change(func() { issuer.discovery = nil })
	verified(t, v, withTokenAt(issuer, -time.Hour, rsaKey(), "rsa"))
}

func TestAnIssuerWithTLSMustHaveItsKeysBehindTLS(t *testing.T) {
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
	write := func(value any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(value) }
	}
	for _, test := range []struct {
		name   string
		change func(i *testIssuer)
	}{
		{"a document of another issuer", func(i *testIssuer) { i.discovery = write(elsewhere.document()) }},
		{"a document of the issuer with a slash", func(i *testIssuer) {
			i.discovery = write(map[string]any{"issuer": i.URL + "/", "jwks_uri": i.URL + "/keys"})
		}},
		{"a document without keys", func(i *testIssuer) { i.discovery = write(map[string]any{"issuer": i.URL}) }},
		{"a document whose keys are a file", func(i *testIssuer) {
			i.discovery = write(map[string]any{"issuer": i.URL, "jwks_uri": "file:///etc/passwd"})
		}},
		{"a document that is not JSON", func(i *testIssuer) {
			i.discovery = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }
		}},
		{"a document that redirects to another host", func(i *testIssuer) {
			i.discovery = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
			}
		}},
		{"keys that redirect to another host", func(i *testIssuer) {
			i.keySet = func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, elsewhere.URL+"/keys", http.StatusFound)
			}
		}},
		{"keys that redirect for ever", func(i *testIssuer) {
			i.keySet = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/keys", http.StatusFound) }
		}},
		{"no keys", func(i *testIssuer) { i.keys = []any{} }},
		{"keys with 404", func(i *testIssuer) { i.keySet = http.NotFound }},
		{"keys that are not JSON", func(i *testIssuer) {
			i.keySet = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{")) }
		}},
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
		{"a document larger than any", func(i *testIssuer) {
			i.discovery = func(w http.ResponseWriter, _ *http.Request) {
				document := i.document()
				document["padding"] = strings.Repeat(" ", maxOIDCBytes)
				_ = json.NewEncoder(w).Encode(document)
			}
		}},
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

func TestARedirectOnTheSameHostIsFollowed(t *testing.T) {
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

// holdDiscovery makes an issuer block before it responds; arrived is closed when it is requested.
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
