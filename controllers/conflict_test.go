package controllers_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Failed writes of one target delay no transition of the others.
func TestPersistentConflictIsReportedAndRetried(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, broken := w.NewKustomization("apps", nil), w.NewKustomization("broken", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", OpenPeriods: []v1alpha1.Period{dated("soon", 10*time.Second, time.Hour)}, Targets: []v1alpha1.TargetReference{named("broken"), named("apps")},
	})
	w.Writes.Before = func(write string) error {
		if write == "apply Kustomization/broken" {
			return conflict()
		}
		return nil
	}
	for range 30 { // enough for the exponential backoff to reach its maximum
		result, err := w.Try(g)
		if err == nil || result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
			t.Fatalf("requeue after %s, the Gate opens in 10s: %v", result.RequeueAfter, err)
		}
		if n := len(w.Writes.Take("apply Kustomization/broken")); n%(ownwrites.Retries+1) != 0 || n == 0 {
			t.Errorf("tried %d times, want %d in each pass", n, ownwrites.Retries+1)
		}
	}
	w.ExpectHeld(app, g)
	w.ExpectUntouched(broken)
	w.Writes.Reset()
	w.Reconcile(g)
	w.ExpectHeld(broken, g)
	w.In(10 * time.Second)
	w.Writes.Before = failing("apply Kustomization/broken")
	_, _ = w.Try(g)
	w.ExpectReleased(app, g)
	w.ExpectHolder(broken, g)
}

// Another client writes the target between the read and the write of the controller.
func TestConcurrentChangeIsReconciledAgain(t *testing.T) {
	const closing, opening = false, true
	conflicts := func(*world, *target.Object, *v1alpha1.Gate, *v1alpha1.Gate) error { return conflict() }
	patches := func(all ...string) func(*world, *target.Object, *v1alpha1.Gate, *v1alpha1.Gate) error {
		return func(w *world, app *target.Object, _, _ *v1alpha1.Gate) error {
			for _, patch := range all {
				if err := w.Flux(app, patch); err != nil {
					return err
				}
			}
			return nil
		}
	}
	takesOver := patches(`{"spec":{"suspend":null}}`, `{"spec":{"suspend":true}}`)
	reports := func(w *world, app *target.Object, _, _ *v1alpha1.Gate) error {
		fresh := w.Reload(inGit(w.Namespace, app.GetName(), nil))
		fresh.SetConditions(append(fresh.GetConditions(), metav1.Condition{Type: "Flux", Status: metav1.ConditionTrue, Reason: "R", LastTransitionTime: metav1.Now()}))
		return cluster.Client.Status().Update(w.Context(), &fresh.Unstructured)
	}
	otherCloses := func(w *world, app *target.Object, g, other *v1alpha1.Gate) error {
		w.Close(other, start)
		return hold(w.Context(), app, g, other)
	}
	isHeld := func(w *world, app *target.Object, g, _ *v1alpha1.Gate) { w.ExpectHeld(app, g) }
	isReleased := func(w *world, app *target.Object, g, _ *v1alpha1.Gate) { w.ExpectReleased(app, g) }
	isTheirs := func(w *world, app *target.Object, _, _ *v1alpha1.Gate) {
		if got := w.Suspension(app); got.Suspend != true || got.HeldBy != "" {
			w.Errorf("got %+v, want it to stay suspended by the user", got)
		}
	}
	hasBoth := func(state func(*world, *target.Object, *v1alpha1.Gate, *v1alpha1.Gate)) func(*world, *target.Object, *v1alpha1.Gate, *v1alpha1.Gate) {
		return func(w *world, app *target.Object, g, other *v1alpha1.Gate) {
			state(w, app, g, other)
			if got := app.GetConditions(); len(got) != 2 {
				w.Errorf("the conditions are %v, want Approved and that of Flux", got)
			}
		}
	}
	isHeldByOther := func(w *world, app *target.Object, _, other *v1alpha1.Gate) { w.ExpectHeld(app, other) }
	const apply, report = "apply Kustomization", "patch-status Kustomization"
	for name, tc := range map[string]struct {
		opens  bool
		at     string
		do     func(w *world, app *target.Object, g, other *v1alpha1.Gate) error
		expect func(w *world, app *target.Object, g, other *v1alpha1.Gate)
	}{
		"a conflict while the gate closes":                                        {closing, apply, conflicts, isHeld},
		"a conflict while the gate opens, before the condition is written":        {opening, report, conflicts, isReleased},
		"a label is set while the gate closes":                                    {closing, apply, patches(`{"metadata":{"labels":{"a":"b"}}}`), isHeld},
		"a user suspends while the gate closes":                                   {closing, apply, patches(`{"spec":{"suspend":true}}`), func(w *world, app *target.Object, _, _ *v1alpha1.Gate) { w.Expect(app, userSuspended) }},
		"a user takes over while the gate opens, before the condition is written": {opening, report, takesOver, isTheirs},
		"a user takes over while the gate opens, after the condition is written":  {opening, apply, takesOver, isTheirs},
		"a user resumes between the hold and the condition":                       {closing, report, patches(`{"spec":{"suspend":null}}`), isHeld},
		"Flux reports while the gate closes":                                      {closing, report, reports, hasBoth(isHeld)},
		"Flux reports while the gate opens":                                       {opening, report, reports, hasBoth(isReleased)},
		"another gate closes while the gate opens":                                {opening, apply, otherCloses, isHeldByOther},
		"another gate closes before the condition is written":                     {opening, report, otherCloses, isHeldByOther},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g, other := w.ClosedGate("production", named("apps")), w.Gate("other", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
			if strings.HasPrefix(name, "another gate") {
				w.Edit(other, func() { other.Spec.Targets = g.Spec.Targets })
			}
			w.Reconcile(other)
			if tc.opens {
				w.Reconcile(g)
				w.ExpectHeld(app, g)
				w.Open(g, start)
			}
			done := false
			w.Writes.Before = once(tc.at, func() error {
				done = true
				return tc.do(w, app, g, other)
			})
			for range 2 {
				w.Reconcile(g)
				w.Reconcile(other)
			}
			if tc.expect(w, app, g, other); !done || len(g.Status.TargetFailures()) > 0 {
				t.Errorf("interrupted is %t, failures %v", done, g.Status.TargetFailures())
			}
		})
	}
}
