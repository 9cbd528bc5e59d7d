package controllers_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// One Gate opens at the instant at which another one closes. Targets are not released in between, whichever is reconciled first.
func TestTargetIsNotReleasedBeforeGateCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	isNamed, selected, naming, other := w.NewKustomization("apps", nil), w.NewKustomization("web", map[string]string{"tier": "web"}), w.NewKustomization("naming", nil), w.NewKustomization("other", nil)
	w.name(naming, "closing")
	both := []*target.Object{isNamed, selected, naming}
	opening := w.Gate("opening", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all()}, OpenPeriods: []v1alpha1.Period{dated("day", hours(1), hours(2))},
	})
	closing := w.Gate("closing", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps"), all("tier", "web")}, ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))},
	})
	w.Reconcile(opening)
	w.Reconcile(closing)
	w.In(hours(1))
	w.Reconcile(opening)
	for _, app := range both {
		w.ExpectHolder(app, closing) // before its own reconciliation
	}
	w.expectOpened(opening, other)
	equal(t, opening.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 4})
	w.Reconcile(closing)
	for _, app := range both {
		w.ExpectHeld(app, closing)
	}
	w.In(hours(2)) // now in the opposite order
	w.Reconcile(closing)
	for _, app := range both {
		w.ExpectHolder(app, opening)
	}
	w.Reconcile(opening)
	for _, app := range both {
		w.ExpectHeld(app, opening)
	}
}

// A user or Git changes which Gates govern a held target. It is not released while one of them is closed, whichever is reconciled first.
func TestTargetIsNotReleasedWhileItsGatesChange(t *testing.T) {
	t.Parallel()
	renamed := func(to string) func(*world, *target.Object, *v1alpha1.Gate) {
		return func(w *world, app *target.Object, _ *v1alpha1.Gate) { w.name(app, to) }
	}
	relabelled := func(w *world, app *target.Object, _ *v1alpha1.Gate) {
		w.PatchAsFlux(app, `{"metadata":{"labels":{"tier":"to"},"annotations":{"`+v1alpha1.GatesAnnotation+`":null}}}`)
	}
	reconciled := func(w *world, to *v1alpha1.Gate) { w.Reconcile(to) }
	for name, tc := range map[string]struct {
		// to is the state of the Gate that must hold the target after the change, empty if there is none.
		to     v1alpha1.State
		change func(w *world, app *target.Object, to *v1alpha1.Gate)
		then   func(w *world, to *v1alpha1.Gate)
		held   string
	}{
		"it names another":          {"closed", renamed("to"), reconciled, "to"},
		"a label":                   {"closed", relabelled, reconciled, "to"},
		"it names none that exists": {"closed", renamed("nowhere"), func(w *world, _ *v1alpha1.Gate) { w.missing(w.Namespace, "nowhere") }, "nowhere"},
		"it names one that goes": {"opened", func(w *world, app *target.Object, to *v1alpha1.Gate) {
			w.Must(cluster.Client.Delete(w.Context(), to))
			w.name(app, "to")
		}, reconciled, "to"},
		"it names one that is open":    {"opened", renamed("to"), nil, ""},
		"a label for one that is open": {"opened", relabelled, nil, ""},
		"it names no gate":             {"closed", func(w *world, app *target.Object, _ *v1alpha1.Gate) { w.name(app) }, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			w.name(app, "from")
			from := w.ClosedGate("from")
			to := w.Gate("to", v1alpha1.GateSpec{Default: tc.to, Targets: []v1alpha1.TargetReference{all("tier", "to")}})
			w.Reconcile(to)
			w.Reconcile(from)
			w.ExpectHeld(app, from)
			tc.change(w, app, to)
			w.Reconcile(from)
			if tc.then == nil {
				w.ExpectFree(app)
				return
			}
			if !w.Suspended(app) {
				t.Fatal("it is released")
			}
			tc.then(w, to)
			w.Reconcile(from)
			if got := w.Suspension(app); got.Suspend != true || got.HeldBy != w.Namespace+"/"+tc.held {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// If the process ends before it has reported that the time is unknown, the next process requests the time again.
func TestSpecIsNotObservedBeforeServerTimeIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ahead(0)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Reconcile(g)
	w.timeUnknown()
	w.Edit(g, func() { g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))} })
	writes := 0
	w.Writes.Before = func(string) error {
		if writes++; writes > 1 { // the decision, and the report that there was no response
			return errBroken
		}
		return nil
	}
	if _, err := w.Try(g); err == nil {
		t.Error("no error")
	}
	if g.Status.ObservedGeneration == g.Generation {
		t.Errorf("generation %d is observed after %d writes", g.Generation, writes)
	}
}
