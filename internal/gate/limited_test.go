package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func TestLimitedRequests(t *testing.T) {
	runScripts(t, map[string]string{
		"an open for an hour":             `closed; 12:00 alice opens /1h only a; 12:00 is closed; 12:00 targets a opened; 12:30 targets b,c closed; 13:00 targets a closed`,
		"a close for an hour":             `opened; 12:00 alice closes /1h only a; 12:00 is opened; 12:30 targets a closed; 12:30 targets b opened; 13:00 targets a opened`,
		"an open in a freeze":             `opened; 12:00 alice closes /unlimited; 12:30 bob opens /1h only a; 12:31 targets a opened; 12:31 targets b closed; 13:30 targets a closed; 13:30 is closed by alice`,
		"a close of an opened Gate":       `closed; 12:00 alice opens /4h; 12:30 bob closes /1h only a; 12:31 targets a closed; 12:31 targets b opened; 13:30 targets a opened`,
		"a freeze ends it":                `closed; 12:00 alice opens /4h only a; 12:30 bob closes /1h; 12:31 targets a closed; 13:30 targets a closed`,
		"an open of the Gate ends it":     `opened; 12:00 alice closes /4h only a; 12:30 bob opens; 12:31 targets a opened`,
		"a planned open":                  `closed; 11:00 alice opens 12:00/1h only a; 11:59 targets a closed; 12:00 targets a opened; 13:00 targets a closed`,
		"a planned close":                 `opened; 11:00 alice closes 12:00/1h only a; 11:59 targets a opened; 12:00 targets a closed; 13:00 targets a opened`,
		"a planned freeze ends it":        `closed; 11:00 bob closes 12:00/1h; 11:30 alice opens /4h only a; 11:59 targets a opened; 12:00 targets a closed; 13:30 targets a closed`,
		"a close takes one of two":        `closed; 12:00 alice opens /4h only a b; 12:30 bob closes /10m only a; 12:31 targets a closed; 12:31 targets b opened; 13:00 targets a closed; 13:00 targets b opened`,
		"an open takes one of two":        `opened; 12:00 alice closes /4h only a b; 12:30 bob opens /10m only a; 13:00 targets a opened; 13:00 targets b closed`,
		"a later open is shorter":         `closed; 12:00 alice opens /4h only a; 12:30 bob opens /10m only a; 12:41 targets a closed`,
		"a later close is shorter":        `opened; 12:00 alice closes /4h only a; 12:30 bob closes /10m only a; 12:41 targets a closed; 16:00 targets a opened`,
		"a withdrawn open":                `closed; 12:00 alice opens /4h only a b; 12:30 bob closes /0s only a; 12:30 targets a closed; 12:30 targets b opened`,
		"a withdrawn close":               `opened; 12:00 alice closes /4h only a b; 12:30 bob opens /0s only a; 12:30 targets a opened; 12:30 targets b closed`,
		"all closes are withdrawn":        `opened; 12:00 alice closes /4h only a b; 12:30 bob opens /0s; 12:30 targets a,b opened`,
		"a withdrawal leaves opens alone": `closed; 12:00 alice opens /4h only a; 12:10 bob closes /4h only b; 12:30 bob opens /0s only a b; 12:30 targets a opened; 12:30 targets b closed`,
		"a withdrawn plan":                `closed; 11:00 alice opens 12:00/1h only a; 11:30 bob closes /0s only a; 12:00 targets a closed`,
		"nothing to withdraw":             `opened; 12:00 alice closes /4h; 12:30 bob opens /0s only a ! there is no close request to withdraw; 12:30 targets a closed`,
		"a webhook in a manual freeze":    `opened; 12:00 alice closes /4h only a; 12:30 ops/ci opens /1h only a ! a user has closed the gate, so a webhook cannot open it; 12:30 ops/ci opens /1h only b; 12:30 targets a closed`,
		"a webhook opens the Gate":        `closed; 12:00 alice closes /4h only a; 12:30 ops/ci calls open /1h; 12:31 targets a closed; 12:31 targets b opened`,
		"a webhook calls":                 `closed; 12:00 ops/ci calls open /1h only a; 12:00:01 targets a opened; 12:01 alice closes /2h; 12:10 ops/ci calls open /1h only a ! closed by alice`,
		"a webhook keeps a wider close":   `opened; 12:00 ops/ci calls close /1h only a b; 12:00:01 ops/ci calls close /2h only a ! unhandled; 12:00:02 targets b closed`,
		"a webhook with a shorter close":  `opened; 12:00 ops/ci calls close /2h only a b; 12:00:01 ops/ci calls close /1h only a = 2026-11-23T12:00:00Z/2h0m0s,only=Kustomization/a,only=Kustomization/b`,
		"approvals":                       `closed; approvals 1; 12:00 alice opens /4h only a; 12:00 targets a closed; 12:05 bob approves; 12:06 targets a opened; 12:06 targets b closed`,
		"a close drops waiting requests":  `closed; approvals 1; 12:00 alice opens /4h only a; 12:01 cleo opens /4h only b; bob writes close 12:02/1m only a; 12:02 reconciles closed; 12:05 bob approves; 12:06 targets a closed; 12:06 targets b opened`,
		"two waiting requests of a user":  `closed; approvals 1; 12:00 alice opens /4h only a; 12:01 alice opens /4h only b; 12:05 bob approves; 12:06 targets a,b opened`,
		"an old value from Git":           `closed; 12:00 git opens /4h only a; 12:10 bob closes /1h only a; 12:20 git opens 12:05/4h only b; 12:30 git opens 12:00/4h only a ! handled; 12:31 targets a closed`,
		"an invalid spec":                 `closed; 12:00 alice opens /4h only a; 12:01 targets a opened; invalid; 12:10 bob closes /1h only a; 12:11 targets a closed`,
		"a withdrawn close, in an open":   `closed; 12:00 alice opens /4h; 12:10 bob closes /4h only a; 12:30 cleo opens /0s; 12:31 targets a opened; 12:31 is opened by alice until 16:00`,
		"a withdrawn open, in a freeze":   `opened; 12:00 alice closes /4h; 12:10 bob opens /4h only a; 12:30 cleo closes /0s; 12:31 targets a closed; 12:31 is closed by alice until 16:00`,
		"an approved withdrawal":          `closed; approvals 1; 12:00 alice opens /4h; 12:01 bob approves; 12:10 bob closes /4h only a; 12:20 cleo opens /0s; 12:30 dan approves; 12:31 is opened`,
		"a plan with another order":       `closed; 11:00 alice opens 14:00/8h only a b; 11:10 alice opens 16:00/1h only b a; 14:01 targets a closed`,
		"a planned open of the Gate":      `closed; 11:00 alice opens /8h; 11:01 bob closes /unlimited only a; 11:10 alice opens 14:00/2h; 14:01 targets a opened`,
		"a webhook keeps another open":    `closed; 12:00 ops/ci calls open /4h only a; 12:00:01 ops/ci calls open /10m ! unhandled; 12:00:02 reconciles closed; 12:00:03 ops/ci calls open /10m; 12:30 targets a opened`,
		"a longer window":                 `opened 1h; 12:00 alice closes only a; 12:30 targets a closed; 13:00 targets a opened; window 4h; 13:30 targets a opened`,
		"a plan from before a freeze":     `opened; 11:00 alice opens 13:00/1h only a; 12:00 bob closes /unlimited; 13:00 targets a closed`,
		"an approval after a close":       `closed; approvals 1; 12:00 alice opens /4h; 12:01 bob closes /4h only a; 12:05 cleo approves; 12:06 targets a closed; 12:06 targets b opened`,
		"a late close, a later open":      `closed; 11:55 alice opens /8h only a; 12:03 cleo opens /4h only b; 12:05 bob closes 12:00/1m only a b; 12:06 targets a closed; 12:06 targets b opened`,
		"a late close, an opened Gate":    `closed; 11:55 alice opens /8h only a; 12:03 cleo opens /4h; 12:05 bob closes 12:00/1m; 12:06 is opened by cleo until 16:03; 16:04 targets a closed`,
		"a late withdrawal":               `closed; 11:55 alice opens /8h only a; 12:04 cleo opens /4h only b; 12:05 bob closes 12:02/0s; 12:06 targets a,b closed`,
		"one user with many requests": `closed; approvals 1; 12:00 alice opens /4h only a; 12:01 alice opens /4h only b; 12:02 alice opens /4h only c; 12:03 alice opens /4h only d
			12:04 alice opens /4h only e; 12:05 alice opens /4h only f; 12:06 alice opens /4h only g; 12:07 alice opens /4h only h; 12:08 bob opens /1h`,
		"an invalid spec opens nothing": `opened; 12:00 alice closes /4h only a; 12:01 targets a closed; invalid; 12:10 bob opens /1h only a b; 12:11 targets b opened`,
	})
}

func TestLimitedRequestsAreBounded(t *testing.T) {
	g := production(closed())
	for i := range v1alpha1.MaxLimitedRequests + 1 {
		annotate(g, v1alpha1.RequestOpen, fmt.Sprintf("%s/4h,only=Kustomization/a%d", stamp(noon.Add(time.Duration(i)*time.Minute)), i))
		handled := gate.ApplyRequests(g, ledger.Unstamped, noon.Add(time.Duration(i)*time.Minute))
		if err := handled[0].Err; (err != nil) != (i == v1alpha1.MaxLimitedRequests) || err != nil && !strings.Contains(err.Error(), "12 requests with targets") {
			t.Errorf("request %d: %v", i, err)
		}
	}
	later := noon.Add(5 * time.Hour)
	if gate.ApplyRequests(g, ledger.Unstamped, later); len(g.Status.Requests) > 0 {
		t.Errorf("requests that have ended are kept: %+v", g.Status.Requests)
	}
	for _, tc := range []struct {
		targets int
		refused bool
	}{{v1alpha1.MaxRequestTargets, false}, {v1alpha1.MaxRequestTargets + 1, true}} {
		later = later.Add(time.Hour)
		value := stamp(later) + "/30m"
		for i := range tc.targets {
			value += fmt.Sprintf(",only=Kustomization/other/a%d", i)
		}
		annotate(g, v1alpha1.RequestOpen, value+",only=Kustomization/other/a0")
		if handled := gate.ApplyRequests(g, ledger.Unstamped, later); (handled[0].Err != nil) != tc.refused {
			t.Errorf("%d targets: %v", tc.targets, handled[0].Err)
		}
	}
}

// Requests take precedence over exceptions, whether the exceptions open or close.
func TestLimitedRequestsWinOverExceptions(t *testing.T) {
	for _, tc := range []struct {
		rest  v1alpha1.State
		value string
		does  v1alpha1.RequestAction
	}{{isClosed, "/1h,only=Kustomization/a", v1alpha1.RequestOpen}, {isOpened, "/unlimited,only=Kustomization/a", v1alpha1.RequestClose}} {
		g := production(closed())
		g.Generation, g.Status.ObservedGeneration = 1, 1
		annotate(g, tc.does, stamp(noon)+tc.value)
		after, r := resolved(g, noon, exception(byDefault(tc.rest), only("a", "b")))
		want := map[v1alpha1.RequestAction]v1alpha1.State{v1alpha1.RequestOpen: isOpened, v1alpha1.RequestClose: isClosed}[tc.does]
		matching := []*v1alpha1.Overlay{}
		for i := range after.Status.Overlays {
			matching = append(matching, &after.Status.Overlays[i])
		}
		slices.Reverse(matching)
		is := gate.WithOverlays(after, matching).Status
		if len(matching) != 2 || r.State != isClosed || is.LastTransition.State != want || !slices.ContainsFunc(is.Conditions, func(c metav1.Condition) bool { return strings.HasSuffix(c.Message, "for this target by a request") }) {
			t.Errorf("%s: got %+v, %+v", tc.does, is.LastTransition, is.Conditions)
		}
	}
}
