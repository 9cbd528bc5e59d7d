package receivers

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestTurnstileAdmitsOneAtLimitedRate(t *testing.T) {
	const callers, perSecond = 20, 500
	turnstile := newSerialLimiter(perSecond)
	var inside, passed atomic.Int64
	var all sync.WaitGroup
	began := time.Now()
	for range callers {
		all.Go(func() {
			if err := turnstile.do(t.Context(), func() {
				if inside.Add(1) > 1 {
					t.Error("two are inside")
				}
				passed.Add(1)
				time.Sleep(5 * time.Second / perSecond) // longer than the next caller has to wait
				inside.Add(-1)
			}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if took := time.Since(began); passed.Load() != callers || took < (callers-1)*time.Second/perSecond {
		t.Errorf("%d of %d passed in %s", passed.Load(), callers, took)
	}
}

// Unverified clients could queue up and disconnect. A sender must not wait behind them.
func TestCanceledCallerDoesNotDelayOthers(t *testing.T) {
	turnstile := newSerialLimiter(rate.Every(500 * time.Millisecond))
	ctx, giveUp := context.WithCancel(t.Context())
	if err := turnstile.do(ctx, func() {}); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() { _ = turnstile.do(ctx, func() {}) })
	}
	time.AfterFunc(200*time.Millisecond, giveUp)
	all.Wait()
	if err := turnstile.do(ctx, func() { t.Error("who gave up passes") }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	soon, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := turnstile.do(soon, func() {}); err != nil {
		t.Errorf("the next one: %v", err)
	}
}

// withKeyWork replaces the limiter for the signatures of tokens.
func withKeyWork(t *testing.T, perSecond rate.Limit) {
	t.Helper()
	usual := keyWork
	keyWork = newSerialLimiter(perSecond)
	t.Cleanup(func() { keyWork = usual })
}

func TestForgedTokenCostsOneVerification(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	v := oidcVerifier(t, issuer.provider())
	verified(t, v, withTokenAt(issuer, 0, rsaKey(), "rsa"))
	withKeyWork(t, rate.Every(24*time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), responseTimeout)
	defer cancel()
	if _, err := v.verify(ctx, withTokenAt(issuer, 0, rsaOther(), "made up")); !errors.Is(err, errUnverified) {
		t.Errorf("with a key that nobody has: %v", err)
	}
	if _, err := v.verify(ctx, withTokenAt(issuer, 0, rsaOther(), "rsa")); !errors.Is(err, errUnverified) {
		t.Errorf("with a wrong signature: %v", err)
	}
	// The limiter permits no second verification, not even for the right sender, who must try again.
	if _, err := v.verify(ctx, withTokenAt(issuer, 0, rsaKey(), "rsa")); err == nil || errors.Is(err, errUnverified) || errors.Is(err, errMalformed) {
		t.Errorf("the next one: %v", err)
	}
}

// The path is not a secret, so any client may send tokens. They must not keep the controller busy, nor use up the limits of the receiver.
func TestForgedTokensAreSlowAndDelayNoSender(t *testing.T) {
	issuer := newTestIssuer(t, standardKeys()...)
	table, _ := newTable(nil)
	path := load(t, table, "oidc", v1alpha1.GenericOIDCReceiver, func(s *v1alpha1.GateReceiverSpec) {
		s.SecretRef, s.OIDCProviders = nil, []v1alpha1.OIDCProvider{issuer.provider()}
	})
	const strangers, perSecond = 2 * burst, 200
	withKeyWork(t, perSecond)
	dial, _ := serve(t, table, patient)
	forged := head(path, 2, "Authorization: Bearer "+token(issuer.claims(nil), jose.RS256, rsaOther(), kid("rsa"))) + "{}"
	good := head(path, 2, "Authorization: Bearer "+token(issuer.claims(nil), jose.RS256, rsaKey(), kid("rsa"))) + "{}"
	if got := code(t, dial(good)); got != http.StatusOK {
		t.Fatalf("the sender: %d", got)
	}
	began := time.Now()
	var all sync.WaitGroup
	for range strangers {
		conn := dial(forged)
		all.Go(func() {
			if got := code(t, conn); got != http.StatusNotFound {
				t.Errorf("a stranger: %d", got)
			}
		})
	}
	if got := code(t, dial(good)); got != http.StatusOK {
		t.Errorf("the sender behind %d strangers: %d", strangers, got)
	}
	all.Wait()
	if took := time.Since(began); took < strangers*time.Second/perSecond {
		t.Errorf("%d tokens were verified in %s", strangers+1, took)
	}
	for i := range burst / 2 {
		if got := code(t, dial(good)); got != http.StatusOK {
			t.Fatalf("request %d of the sender: %d", i, got)
		}
	}
}
