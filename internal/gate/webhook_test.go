package gate_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func hook(action v1alpha1.RequestAction) ledger.Request {
	return ledger.Request{Action: action, By: "GateReceiver apps/smoke", Reason: "tests passed"}
}

// wrote has a webhook request an action and returns the value of the annotation.
func wrote(t *testing.T, g *v1alpha1.Gate, action v1alpha1.RequestAction, now time.Time) string {
	t.Helper()
	if err := ledger.WriteRequest(g, hook(action), now); err != nil {
		t.Fatal(err)
	}
	return ledger.Requested(g, action)
}

func TestWebhookRequestIsLaterThanAllOthers(t *testing.T) {
	later := func(d time.Duration) string { return stamp(noon.Add(d)) }
	for name, tc := range map[string]struct {
		// annotations of people, and those that webhooks wrote.
		annotations, received map[string]string
		memory                v1alpha1.HandledRequest
		want                  string
		err                   error
	}{
		"of none":                                    {want: later(0)},
		"of an earlier webhook":                      {received: map[string]string{"close": later(-time.Second)}, want: later(0)},
		"of one at the same time":                    {received: map[string]string{"close": later(0)}, want: later(time.Microsecond)},
		"of one by a clock that is ahead":            {received: map[string]string{"close": later(time.Minute)}, want: later(time.Minute + time.Microsecond)},
		"of one with nanoseconds":                    {received: map[string]string{"close": later(1999)}, want: later(2 * time.Microsecond)},
		"of one with a window":                       {received: map[string]string{"close": later(time.Second) + "/30m"}, want: later(time.Second + time.Microsecond)},
		"of one for the same action":                 {received: map[string]string{"open": later(time.Second)}, want: later(time.Second + time.Microsecond)},
		"of the latest of two":                       {received: map[string]string{"open": later(2 * time.Second), "close": later(time.Second)}, want: later(2*time.Second + time.Microsecond)},
		"unless a user has closed it":                {annotations: map[string]string{"close": later(-time.Second)}, err: ledger.ErrClosedByPeople},
		"also by a clock that is ahead":              {annotations: map[string]string{"close": later(time.Minute)}, err: ledger.ErrClosedByPeople},
		"unless that is over":                        {annotations: map[string]string{"close": later(-time.Hour) + "/59m"}, want: later(0)},
		"unless a user has requested an open":        {annotations: map[string]string{"open": later(-time.Second)}, err: ledger.ErrUnhandled},
		"but not of a planned one":                   {annotations: map[string]string{"close": later(time.Hour)}, want: later(0)},
		"but not of garbage":                         {annotations: map[string]string{"close": "now", "open": "/"}, want: later(0)},
		"but not of the end of time":                 {annotations: map[string]string{"close": "9999-12-31T23:59:59.999999999Z", "open": "9999-12-31T23:59:59Z"}, want: later(0)},
		"of one whose annotation is gone":            {memory: v1alpha1.HandledRequest{LastHandled: later(0)}, want: later(time.Microsecond)},
		"of one that was handled":                    {memory: v1alpha1.HandledRequest{RequestedAt: &metav1.MicroTime{Time: noon}}, want: later(time.Microsecond)},
		"unless our clock is far behind":             {memory: v1alpha1.HandledRequest{RequestedAt: &metav1.MicroTime{Time: noon.Add(time.Minute + time.Second)}}, err: ledger.ErrAhead},
		"unless one is planned and not yet seen":     {annotations: map[string]string{"open": later(time.Hour)}, err: ledger.ErrUnhandled},
		"unless one with a window is planned":        {annotations: map[string]string{"open": later(time.Hour) + "/1h"}, err: ledger.ErrUnhandled},
		"also of a planned one that was seen":        {annotations: map[string]string{"open": later(time.Hour)}, memory: v1alpha1.HandledRequest{LastHandled: later(time.Hour)}, want: later(0)},
		"also of one that is planned for next year":  {annotations: map[string]string{"open": later(366 * 24 * time.Hour)}, err: ledger.ErrUnhandled},
		"and not of one that is planned for decades": {annotations: map[string]string{"open": later(367 * 24 * time.Hour)}, want: later(0)},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			for action, value := range tc.annotations {
				annotate(g, v1alpha1.RequestAction(action), value)
			}
			for action, value := range tc.received {
				annotate(g, v1alpha1.RequestAction(action), value)
				by(g, v1alpha1.RequestAction(action), "GateReceiver apps/other", "")
			}
			tc.memory.Action = v1alpha1.RequestOpen
			g.Status.Memory.HandledRequests = []v1alpha1.HandledRequest{tc.memory}
			before := ledger.Requested(g, v1alpha1.RequestOpen)
			err := ledger.WriteRequest(g, hook(v1alpha1.RequestOpen), noon)
			if !errors.Is(err, tc.err) {
				t.Fatalf("got %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				tc.want = before
			}
			if got := ledger.Requested(g, v1alpha1.RequestOpen); got != tc.want {
				t.Errorf("requested at %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRequestWithoutReasonClearsPreviousReason(t *testing.T) {
	g := closed()
	wrote(t, g, v1alpha1.RequestClose, noon)
	handle(g, noon)
	r := hook(v1alpha1.RequestClose)
	r.Reason, r.Window = "", duration(90*time.Minute)
	if err := ledger.WriteRequest(g, r, noon.Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	if reason, ok := g.Annotations[v1alpha1.CloseReasonAnnotation]; ok {
		t.Errorf("reason %q", reason)
	}
	if got, want := ledger.Requested(g, v1alpha1.RequestClose), stamp(noon.Add(time.Second))+"/1h30m0s"; got != want {
		t.Errorf("requested at %q, want %q", got, want)
	}
}

// Replicas whose clocks differ by less than a minute accept webhooks, and a controller with another clock reconciles the Gate at random
// times.
func TestLastAcknowledgedWebhookWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		skews := rapid.SliceOfN(rapid.IntRange(-25_000, 25_000), 4, 4).Draw(t, "skews in ms")
		clock := func(i int, now time.Time) time.Time {
			return now.Add(time.Duration(skews[i]) * time.Millisecond)
		}
		g, now := closed(), noon
		last := v1alpha1.RequestAction("")
		look := func() {
			for _, r := range handle(g, clock(0, now)) {
				if r.Err != nil {
					t.Fatalf("%s at %s is refused: %s", r.Action, r.Value, r.Err)
				}
			}
		}
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 999, 40_000, 60_000_000, 3_600_000_000}).Draw(t, "µs")) * time.Microsecond)
			switch step := rapid.IntRange(0, 5).Draw(t, "who"); step {
			case 4:
				look()
			case 5: // a user removes the annotations of handled requests
				look()
				g.Annotations = nil
			default:
				action := rapid.SampledFrom([]v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}).Draw(t, "action")
				if err := ledger.WriteRequest(g, hook(action), clock(step, now)); err != nil {
					t.Fatalf("not written: %s", err)
				}
				last = action
			}
		}
		look()
		now = now.Add(2 * time.Minute)
		look()
		want := v1alpha1.StateClosed
		if last == v1alpha1.RequestOpen {
			want = v1alpha1.StateOpened
		}
		if got := gate.Decide(g, clock(0, now)); got.State != want {
			t.Fatalf("%s because of %s, but %q was acknowledged last", got.State, got.Reason, last)
		}
	})
}

func TestReasonOfWebhookIsOneLineInStatus(t *testing.T) {
	g := closed()
	r := hook(v1alpha1.RequestOpen)
	r.Reason = "a\nb\x00c\x1b[31md" + strings.Repeat("é", 5000)
	if err := ledger.WriteRequest(g, r, noon); err != nil {
		t.Fatal(err)
	}
	got := handle(g, noon)[0].Reason
	if strings.ContainsAny(got, "\n\x00\x1b") || len(got) > 512 || !strings.HasPrefix(got, "a b c [31md") {
		t.Errorf("got %q", got)
	}
	if g.LatestRequest() == nil || g.LatestRequest().Source != v1alpha1.SourceWebhook {
		t.Errorf("last request %+v", g.LatestRequest())
	}
}
