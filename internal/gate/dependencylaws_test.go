package gate_test

import (
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// drawBusyGate draws a Gate with a schedule, freezes of both kinds, requests, and now
// and then an invalid spec and a last state.
func drawBusyGate(t *rapid.T, now time.Time) *v1alpha1.Gate {
	g := drawGate(t)
	for _, mode := range []v1alpha1.Override{"Allow", "Deny"} {
		if rapid.Bool().Draw(t, "freeze "+string(mode)) {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, closing(drawPeriod(t, "freeze-"+map[v1alpha1.Override]string{"Allow": "soft", "Deny": "hard"}[mode]), mode))
		}
	}
	for _, action := range []v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose} {
		if rapid.Bool().Draw(t, "request "+string(action)) {
			annotate(g, action, hourly(drawHour(t, string(action)+" at")))
		}
	}
	gate.ApplyRequests(g, ledger.Unstamped, now)
	if rapid.IntRange(0, 9).Draw(t, "invalid") == 0 {
		invalid(&g.Spec)
	}
	if rapid.Bool().Draw(t, "was opened") {
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue}}
	}
	return g
}

// follow has a Gate follow some objects, and says which of them are ready.
func follow(t *rapid.T, g *v1alpha1.Gate) (allReady bool) {
	allReady = true
	for _, ref := range []v1alpha1.DependencyReference{staging(), canary()}[:rapid.IntRange(1, 2).Draw(t, "followed")] {
		g.Spec.DependsOn = append(g.Spec.DependsOn, ref)
		message := rapid.SampledFrom([]string{"", "", noSuchFile}).Draw(t, ref.Name+" says")
		allReady = allReady && message == ""
		seen(g, ref, message)
	}
	return allReady
}

func TestGateIsNeverOpenWhileDependencyIsNotReady(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := utc(hourly(drawHour(t, "now"))).Add(time.Duration(rapid.IntRange(0, 3599).Draw(t, "second")) * time.Second)
		g, all := drawBusyGate(t, now), drawExceptions(t)
		without := gate.Decide(g, now, all...)
		allReady := follow(t, g)
		with := gate.Decide(g, now, all...)
		if allReady {
			if !reflect.DeepEqual(with, without) {
				t.Fatalf("got %+v, without a watch %+v", with, without)
			}
			return
		}
		if with.State != isClosed || with.Next != nil {
			t.Fatalf("%s, next %v", with.Message, with.Next)
		}
		if !reflect.DeepEqual([]any{with.RequestedAt, with.ResetToDefaultAt}, []any{without.RequestedAt, without.ResetToDefaultAt}) {
			t.Fatalf("the request is reported as %v, %v", with.RequestedAt, with.ResetToDefaultAt)
		}
		if with.Reason != without.Reason && with.Reason != v1alpha1.DependencyNotReadyReason {
			t.Fatalf("reason %s, without a watch %s", with.Reason, without.Reason)
		}
		if len(without.Errors) == 0 && !with.Recheck.Equal(without.Recheck) {
			t.Fatalf("recheck at %s, without a watch at %s", with.Recheck, without.Recheck)
		}
	})
}
