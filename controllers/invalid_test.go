package controllers_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// broken sets a spec that the API server accepts but that does not compile.
func broken(g *v1alpha1.Gate) {
	g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "leap", Schedule: ptr.To("0 0 31 4-6/2 *"), Duration: duration(time.Hour)}}}
}

func (w *world) expectStalled(g *v1alpha1.Gate, opened metav1.ConditionStatus) {
	w.Helper()
	const path = "spec.closePeriods[0].schedule"
	for condition, status := range map[string]metav1.ConditionStatus{
		meta.StalledCondition: metav1.ConditionTrue, meta.ReadyCondition: metav1.ConditionFalse, v1alpha1.OpenedCondition: opened,
	} {
		c := conditions.Get(g, condition)
		if c == nil || c.Status != status || c.Reason != v1alpha1.InvalidSpecReason || !strings.Contains(c.Message, path) {
			w.Errorf("%s is %+v; want %s, InvalidSpec and %s", condition, c, status, path)
		}
	}
	if conditions.Has(g, meta.ReconcilingCondition) {
		w.Errorf("Reconciling is %v", conditions.Get(g, meta.ReconcilingCondition))
	}
	if g.Status.ObservedGeneration != g.Generation {
		w.Errorf("observed generation %d of %d", g.Status.ObservedGeneration, g.Generation)
	}
}

func TestInvalidGateKeepsStateAndClosesWhenDue(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Window: duration(time.Hour), Targets: []v1alpha1.TargetReference{named("apps")}})
	w.Open(g, start)
	w.Reconcile(g)
	w.ExpectUntouched(app)

	w.Edit(g, func() { broken(g) })
	w.In(hours(1) - 30*time.Second)
	result := w.Reconcile(g)
	w.expectStalled(g, metav1.ConditionTrue)
	w.ExpectUntouched(app)
	if result.RequeueAfter != 30*time.Second {
		t.Errorf("requeue after %s", result.RequeueAfter)
	}
	w.In(hours(1) - time.Second)
	w.Reconcile(g)
	w.expectStalled(g, metav1.ConditionTrue)
	w.ExpectUntouched(app)

	w.In(hours(1))
	w.Reconcile(g)
	w.expectStalled(g, metav1.ConditionFalse)
	w.ExpectHeld(app, g)

	w.In(hours(2))
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.expectStalled(g, metav1.ConditionFalse)
	w.ExpectHeld(app, g)

	w.Edit(g, func() { g.Spec.ClosePeriods = nil })
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	if conditions.Has(g, meta.StalledCondition) || !conditions.IsReady(g) {
		t.Errorf("repaired, but %v", g.Status.Conditions)
	}
}

func TestRefusedAnnotationEmitsOneWarning(t *testing.T) {
	for name, tc := range map[string]struct{ value, cause string }{
		"yesterday": {"yesterday", "must be TIME[/DURATION"},
	} {
		for action, annotation := range map[v1alpha1.State]string{"closed": v1alpha1.OpenRequestedAtAnnotation, "opened": v1alpha1.CloseRequestedAtAnnotation} {
			t.Run(name+" while "+string(action), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				app := w.NewKustomization("apps", nil)
				g := w.Gate("production", v1alpha1.GateSpec{Default: action, Targets: []v1alpha1.TargetReference{named("apps")}})
				w.Reconcile(g)
				w.Events.Take("")
				before, was := w.Suspension(app), g.DeepCopy()
				w.Annotate(g, annotation, tc.value)
				for i := range 3 {
					w.In(time.Duration(i) * time.Minute)
					w.Reconcile(g)
				}
				events := w.Events.Take("")
				if action == v1alpha1.StateClosed { // the held target has an event, too
					if len(events) != 2 || !strings.HasPrefix(events[1], "Warning Kustomization/apps RequestRefused: Request for gate '"+key(g)+"' refused, annotation ") {
						t.Fatalf("want a warning on the target, got %q", events)
					}
					events = events[:1]
				}
				if len(events) != 1 || !strings.HasPrefix(events[0], "Warning Gate/production RequestRefused: ") ||
					!strings.Contains(events[0], annotation) || !strings.Contains(events[0], tc.value) || !strings.Contains(events[0], tc.cause) {
					t.Errorf("want one warning that names annotation, value and cause, got %q", events)
				}
				w.Expect(app, before)
				if !conditions.IsReady(g) || g.LatestRequest() != nil || g.Status.RequestedAt != nil || g.Status.NextTransition != nil ||
					conditions.GetReason(g, v1alpha1.OpenedCondition) != conditions.GetReason(was, v1alpha1.OpenedCondition) {
					t.Errorf("status %+v", g.Status)
				}
			})
		}
	}
}
