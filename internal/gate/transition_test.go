package gate_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func TestStateSince(t *testing.T) {
	before := v1alpha1.Transition{At: metav1.NewTime(noon.Add(-time.Hour)), State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason}
	for name, tc := range map[string]struct {
		last     *v1alpha1.Transition
		decision gate.Decision
		changed  bool
		want     v1alpha1.Transition
	}{
		"for the first time": {nil, gate.Decision{State: v1alpha1.StateClosed, Reason: v1alpha1.DefaultReason}, false,
			v1alpha1.Transition{At: metav1.NewTime(noon), State: v1alpha1.StateClosed, Reason: v1alpha1.DefaultReason}},
		"it opens": {&before, gate.Decision{State: v1alpha1.StateOpened, Reason: v1alpha1.OpenPeriodReason, By: "nights"}, true,
			v1alpha1.Transition{At: metav1.NewTime(noon), State: v1alpha1.StateOpened, Reason: v1alpha1.OpenPeriodReason, Period: "nights"}},
		"it is closed for another reason": {&before, gate.Decision{State: v1alpha1.StateClosed, Reason: v1alpha1.ClosePeriodReason, By: "christmas"}, false,
			v1alpha1.Transition{At: before.At, State: v1alpha1.StateClosed, Reason: v1alpha1.ClosePeriodReason, Period: "christmas"}},
		"it has opened and closed while nobody looked": {&before, gate.Decision{State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason}, true,
			v1alpha1.Transition{At: metav1.NewTime(noon), State: v1alpha1.StateClosed, Reason: v1alpha1.OutsideOpenPeriodsReason}},
		"nobody says that it has opened": {&before, gate.Decision{State: v1alpha1.StateOpened, Reason: v1alpha1.DefaultReason}, false,
			v1alpha1.Transition{At: metav1.NewTime(noon), State: v1alpha1.StateOpened, Reason: v1alpha1.DefaultReason}},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			g.Status.LastTransition = tc.last.DeepCopy()
			if got := *gate.LastTransition(g, tc.decision, noon, tc.changed); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestObservedGenerationOfGate(t *testing.T) {
	asked := func(by, reason string, action v1alpha1.RequestAction) *v1alpha1.Gate {
		g := closed()
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionFalse, Reason: reason}}
		g.Status.Requests = []v1alpha1.AcceptedRequest{{State: v1alpha1.RequestInForce, Action: action, RequestedAt: metav1.NewMicroTime(noon.Add(-time.Hour)), RequestedBy: by}}
		return g
	}
	for _, g := range []*v1alpha1.Gate{
		asked("alice", v1alpha1.CloseRequestedReason, v1alpha1.RequestClose), asked("alice", v1alpha1.OpenRequestedReason, v1alpha1.RequestOpen),
	} {
		if r := ledger.DecidedBy(g, noon); r == nil || r.By != "alice" {
			t.Errorf("got %v", r)
		}
	}
	for name, g := range map[string]*v1alpha1.Gate{
		"no status": closed(), "another reason": asked("alice", v1alpha1.ClosePeriodReason, v1alpha1.RequestClose),
		"another action": asked("alice", v1alpha1.CloseRequestedReason, v1alpha1.RequestOpen),
	} {
		if r := ledger.DecidedBy(g, noon); r != nil {
			t.Errorf("%s: got %v", name, r)
		}
	}
}
