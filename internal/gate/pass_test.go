package gate_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// A Gate that does not open by the request of one person lets nothing pass by one either.
func TestGatesThatRefusePasses(t *testing.T) {
	closed := func(reason, by string, change ...func(*v1alpha1.Gate)) *v1alpha1.Gate {
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionFalse, Reason: reason}}
		g.Status.LastTransition = &v1alpha1.Transition{State: v1alpha1.StateClosed, Reason: reason, Period: by}
		for _, c := range change {
			c(g)
		}
		return g
	}
	hard := func(g *v1alpha1.Gate) {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze"}, Override: v1alpha1.OverrideDeny}}
	}
	asks := func(g *v1alpha1.Gate) {
		g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
	}
	for name, tc := range map[string]struct {
		gate *v1alpha1.Gate
		want string
	}{
		"closed by default":         {closed(v1alpha1.DefaultReason, ""), ""},
		"not decided":               {&v1alpha1.Gate{}, "it has not decided yet"},
		"an invalid spec":           {closed(v1alpha1.InvalidSpecReason, ""), "its spec is invalid"},
		"an unknown time":           {closed(v1alpha1.TimeUnknownReason, ""), "the API server does not return its time"},
		"what it watches":           {closed(v1alpha1.DependencyNotReadyReason, ""), "a dependency is not ready"},
		"a hard freeze":             {closed(v1alpha1.ClosePeriodReason, "freeze", hard), "its close period 'freeze' has override: Deny"},
		"a close period":            {closed(v1alpha1.ClosePeriodReason, "night"), ""},
		"a close request":           {closed(v1alpha1.CloseRequestedReason, ""), ""},
		"approvals are asked for":   {closed(v1alpha1.DefaultReason, "", asks), "it requires approval of open requests, and a pass cannot be approved"},
		"approvals, and a freeze":   {closed(v1alpha1.ClosePeriodReason, "freeze", asks, hard), "it requires approval of open requests, and a pass cannot be approved"},
		"approvals, and a request":  {closed(v1alpha1.CloseRequestedReason, "", asks), "it requires approval of open requests, and a pass cannot be approved"},
		"approvals, an unread spec": {closed(v1alpha1.InvalidSpecReason, "", asks), "its spec is invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := gate.PassBarred(tc.gate, time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
