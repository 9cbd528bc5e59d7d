package gate_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// ask annotates a Gate as a user, handles the request, and returns why it is refused.
func ask(t *testing.T, g *v1alpha1.Gate, action v1alpha1.RequestAction, value, who string, now time.Time) string {
	t.Helper()
	annotate(g, action, value)
	by(g, action, who, "")
	for _, r := range handle(g, now) {
		if r.Err != nil && r.Action == action {
			return r.Err.Error()
		}
	}
	return ""
}

func TestWithdrawalIsDescribed(t *testing.T) {
	g := opened()
	ask(t, g, v1alpha1.RequestClose, "2026-11-23T11:00:00Z", "alice", noon)
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/0s")
	by(g, v1alpha1.RequestOpen, "bob", "false alarm")
	handled := handle(g, noon)
	if len(handled) != 1 || handled[0].String() != "close requests withdrawn at 2026-11-23T12:00:00Z by bob: false alarm" {
		t.Errorf("%v", handled)
	}
}

func TestRequestState(t *testing.T) {
	const planned, inForce, ended = v1alpha1.RequestPlanned, v1alpha1.RequestInForce, v1alpha1.RequestEnded
	for name, tc := range map[string]struct {
		action v1alpha1.RequestAction
		values map[string]string
		want   map[string][]v1alpha1.RequestState
	}{
		"an open with a window": {v1alpha1.RequestOpen, map[string]string{"12:00": "2026-11-23T13:00:00Z/1h"}, map[string][]v1alpha1.RequestState{
			"12:00": {planned}, "13:00": {inForce}, "13:59": {inForce}, "14:00": {ended}, "15:00": {ended},
		}},
		"a close with a window": {v1alpha1.RequestClose, map[string]string{"12:00": "2026-11-23T12:00:00Z/1h"}, map[string][]v1alpha1.RequestState{
			"12:00": {inForce}, "12:59": {inForce}, "13:00": {ended},
		}},
		"two closes of one person": {v1alpha1.RequestClose, map[string]string{"12:00": "2026-11-23T12:00:00Z/1h", "12:30": "2026-11-23T12:30:00Z/1h"}, map[string][]v1alpha1.RequestState{
			"12:30": {inForce}, "13:15": {inForce}, "13:30": {ended},
		}},
		"an open that is withdrawn": {v1alpha1.RequestOpen, map[string]string{"12:00": "2026-11-23T12:00:00Z", "12:30": "close"}, map[string][]v1alpha1.RequestState{
			"12:00": {inForce}, "12:30": {ended, ended},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			for _, at := range []string{"12:00", "12:30", "12:59", "13:00", "13:15", "13:30", "13:59", "14:00", "15:00"} {
				now := utc("2026-11-23T" + at + ":00Z")
				switch value, ok := tc.values[at]; {
				case value == "close":
					annotate(g, v1alpha1.RequestClose, "2026-11-23T"+at+":00Z/0s")
				case ok:
					annotate(g, tc.action, value)
				}
				handle(g, now)
				want, ok := tc.want[at]
				var got []v1alpha1.RequestState
				for _, r := range g.Status.Requests {
					got = append(got, r.State)
				}
				if ok && !slices.Equal(got, want) {
					t.Errorf("at %s: got %v, want %v", at, got, want)
				}
			}
		})
	}
}

// A later release may know more states, and a user may go back to this one.
func TestOpenRequestWithUnknownStateOpensNothing(t *testing.T) {
	for state, want := range map[v1alpha1.RequestState]v1alpha1.State{v1alpha1.RequestInForce: isOpened, "": isClosed, "Rejected": isClosed} {
		g, at := closed(), metav1.NewMicroTime(noon)
		g.Status.Requests = []v1alpha1.AcceptedRequest{{Action: v1alpha1.RequestOpen, State: state, RequestedAt: at, AcceptedAt: at, Source: v1alpha1.SourceAnnotation}}
		if d := gate.Decide(g, noon.Add(time.Minute)); d.State != want {
			t.Errorf("state %q: the gate is %s", state, d.State)
		}
		g.Status.Requests[0].Action, g.Spec.Default = v1alpha1.RequestClose, isOpened
		if d := gate.Decide(g, noon.Add(time.Minute)); d.State != isClosed {
			t.Errorf("state %q of a close: the gate is %s", state, d.State)
		}
	}
}
