package gate_test

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// reconciled returns a Gate whose status says that it is open.
func reconciled() *v1alpha1.Gate {
	g := opened()
	g.Generation, g.Status.ObservedGeneration = 1, 1
	meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{
		Type: v1alpha1.OpenedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.DefaultReason,
	})
	return g
}

// The status of a Gate says what it is only as of its last reconciliation.
func TestReportedOpen(t *testing.T) {
	next := func(at time.Duration, state v1alpha1.State) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(noon.Add(at)), State: state}
		}
	}
	opened := func(status metav1.ConditionStatus, reason string) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			meta.SetStatusCondition(&g.Status.Conditions, metav1.Condition{Type: v1alpha1.OpenedCondition, Status: status, Reason: reason})
		}
	}
	requested := func(action v1alpha1.RequestAction, value string, handled ...string) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			g.Annotations = map[string]string{string(action) + ".gate.fluxcd.io/requestedAt": value}
			for _, last := range handled {
				g.Status.Memory.HandledRequests = []v1alpha1.HandledRequest{{Action: action, LastHandled: last}}
			}
		}
	}
	for name, tc := range map[string]struct {
		change            func(*v1alpha1.Gate)
		open, beyondDoubt bool
	}{
		"open":                      {func(*v1alpha1.Gate) {}, true, true},
		"closed":                    {opened(metav1.ConditionFalse, v1alpha1.DefaultReason), false, false},
		"not known":                 {opened(metav1.ConditionUnknown, v1alpha1.DefaultReason), false, false},
		"never reconciled":          {func(g *v1alpha1.Gate) { g.Status = v1alpha1.GateStatus{} }, false, false},
		"opens now":                 {next(0, v1alpha1.StateOpened), true, true},
		"closes later":              {next(time.Second, v1alpha1.StateClosed), true, true},
		"closes now":                {next(0, v1alpha1.StateClosed), false, false},
		"should have closed":        {next(-time.Hour, v1alpha1.StateClosed), false, false},
		"its spec has changed":      {func(g *v1alpha1.Gate) { g.Generation++ }, false, false},
		"suspended":                 {func(g *v1alpha1.Gate) { g.Spec.Suspend = true }, true, false},
		"suspended and changed":     {func(g *v1alpha1.Gate) { g.Generation++; g.Spec.Suspend = true }, true, false},
		"its spec is invalid":       {opened(metav1.ConditionTrue, v1alpha1.InvalidSpecReason), true, false},
		"being deleted":             {func(g *v1alpha1.Gate) { g.DeletionTimestamp = instant(stamp(noon)) }, true, false},
		"asked to open":             {requested(v1alpha1.RequestOpen, stamp(noon)), true, true},
		"asked to close":            {requested(v1alpha1.RequestClose, stamp(noon)), true, false},
		"asked to close once more":  {requested(v1alpha1.RequestClose, stamp(noon), stamp(noon.Add(-time.Hour))), true, false},
		"asked to close, and heard": {requested(v1alpha1.RequestClose, stamp(noon), stamp(noon)), true, true},
		"a close in a line": {func(g *v1alpha1.Gate) {
			g.Annotations = map[string]string{v1alpha1.UnhandledAnnotation: "1\tclose\tannotation\t" + stamp(noon) + "\tjane\t"}
		}, true, false},
		"a close in a line, and heard": {func(g *v1alpha1.Gate) {
			g.Annotations = map[string]string{v1alpha1.UnhandledAnnotation: "1\tclose\tannotation\t" + stamp(noon) + "\tjane\t"}
			g.Status.Memory.LastHandledLine = 1
		}, true, true},
		"asked to close in bad form": {requested(v1alpha1.RequestClose, "noon"), true, false},
	} {
		g := reconciled()
		tc.change(g)
		if got := gate.IsOpen(g, noon); got != tc.open {
			t.Errorf("%s: IsOpen is %t", name, got)
		}
		if got := gate.ReportedOpen(g, noon); got != tc.beyondDoubt {
			t.Errorf("%s: ReportedOpen is %t", name, got)
		}
	}
}
