package controllers_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// One Gate opens at the instant at which another one closes. Whichever comes first,
// Flux must not get a chance in between.
func TestATargetIsNotReleasedBeforeAGateThatCloses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		closesAt time.Duration
		targets  []v1alpha1.TargetReference
	}{
		"named":              {hours(1), []v1alpha1.TargetReference{named("apps")}},
		"selected by labels": {hours(1), []v1alpha1.TargetReference{all("tier", "web")}},
		"naming the gate":    {hours(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app, other := w.NewKustomization("apps", map[string]string{"tier": "web"}), w.NewKustomization("other", nil)
			if tc.targets == nil {
				w.name(app, "closing")
			}
			opening := w.Gate("opening", v1alpha1.GateSpec{
				Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps"), named("other")},
				OpenPeriods: []v1alpha1.Period{dated("day", hours(1), hours(2))},
			})
			closing := w.Gate("closing", v1alpha1.GateSpec{
				Default: v1alpha1.StateOpened, Targets: tc.targets,
				ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(tc.closesAt, hours(2))},
			})
			w.Reconcile(opening)
			w.Reconcile(closing)
			w.In(hours(1))
			w.Reconcile(opening)
			w.ExpectHolder(app, closing) // before its own reconciliation
			w.expectOpened(opening, other)
			equal(t, opening.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 2})
			w.Reconcile(closing)
			w.ExpectHeld(app, closing)
			w.In(hours(2)) // the other way round
			w.Reconcile(closing)
			w.ExpectHolder(app, opening)
			w.Reconcile(opening)
			w.ExpectHeld(app, opening)
		})
	}
}

// The same for a Gate that lets go for good.
func TestATargetIsNotLeftBeforeAGateThatCloses(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *world, g *v1alpha1.Gate){
		"the gate is deleted":     func(w *world, g *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), g)) },
		"it governs it no longer": func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.Targets = nil }) },
		"it is deleted all of a sudden": func(w *world, g *v1alpha1.Gate) {
			w.Edit(g, func() { g.Finalizers = nil })
			w.Must(cluster.Client.Delete(w.Context(), g))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			leaving := w.ClosedGate("leaving", named("apps"))
			closing := w.Gate("closing", v1alpha1.GateSpec{
				Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()},
				ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))},
			})
			w.Reconcile(leaving)
			w.Reconcile(closing)
			w.In(hours(1))
			leave(w, leaving)
			w.Reconcile(leaving)
			w.ExpectHolder(app, closing)
			w.Reconcile(closing)
			w.ExpectHeld(app, closing)
			if name == "the gate is deleted" && !w.gone(leaving) {
				t.Error("it stays")
			}
		})
	}
}

// A person, or Git, changes which Gates govern a target that is held. Whichever of them
// comes first, it is not released as long as one of them is closed.
func TestATargetThatChangesItsGatesIsNotReleasedInBetween(t *testing.T) {
	t.Parallel()
	renamed := func(to string) func(*world, *target.Object, *v1alpha1.Gate) {
		return func(w *world, app *target.Object, _ *v1alpha1.Gate) { w.name(app, to) }
	}
	relabelled := func(w *world, app *target.Object, _ *v1alpha1.Gate) {
		w.PatchAsFlux(app, `{"metadata":{"labels":{"tier":"to"},"annotations":{"`+v1alpha1.GatesAnnotation+`":null}}}`)
	}
	reconciled := func(w *world, to *v1alpha1.Gate) { w.Reconcile(to) }
	for name, tc := range map[string]struct {
		// to is the state of the Gate that is to hold the target from then on, if any.
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

// To release thousands of targets may take minutes, in which no other Gate takes this one for
// closed.
func TestAGateThatOpensByANewSpecIsOpenBeforeItsTargetsAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", all())
	w.Reconcile(g)
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateOpened })
	looked := false
	w.Writes.Before = once("Kustomization", func() error {
		meanwhile := &v1alpha1.Gate{}
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), meanwhile))
		if looked = true; verdict.Governing("", meanwhile, start).Effect != verdict.Open {
			t.Errorf("it counts as closed, generation %d of %d: %s", meanwhile.Status.ObservedGeneration, meanwhile.Generation, opened(meanwhile))
		}
		return nil
	})
	w.Reconcile(g)
	if !looked {
		t.Error("no target was released")
	}
}

// If the process dies before it has told that it does not know the time, it asks once more.
func TestASpecIsNotObservedBeforeTheTimeIsKnown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ahead(0)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Reconcile(g)
	w.timeUnknown()
	w.Edit(g, func() { g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))} })
	writes := 0
	w.Writes.Before = func(string) error {
		if writes++; writes > 1 { // what is decided, and that there was no answer
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

// A Certificate does not wait for the name of a Gate that lets it go.
func TestACertificateAwaitsOnlyWhoHoldsIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		at    time.Duration
		waits bool
	}{"before the margin of the other": {57 * day, true}, "past it": {58*day + hours(12), false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			www := w.certificate("www", nil)
			from := w.ClosedGate("from", certificates)
			to := w.Gate("to", v1alpha1.GateSpec{
				Default: "closed", Certificates: &v1alpha1.CertificatePolicy{SafetyMargin: duration(2 * day)},
			})
			w.Reconcile(to)
			w.Reconcile(from)
			w.expectRenewal(www, atMargin, key(from), isDeferred...)
			w.Edit(to, func() { to.Spec.Targets = []v1alpha1.TargetReference{certificates} })
			w.Open(from, w.In(tc.at))
			w.Reconcile(from)
			w.Reconcile(to)
			if _, waits := w.Reload(www).Object["spec"].(map[string]any)["renewal"]; waits != tc.waits {
				t.Errorf("it waits: %t", waits)
			}
		})
	}
}

// A suspended Gate is not reconciled, so it does not hold a target that begins to name it in any namespace. Other Gates hold a target that
// must not refer to them.
func TestATargetDoesNotAwaitASuspendedGate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ suspended, refused, waits bool }{
		"suspended": {true, false, false}, "suspended, refused": {true, true, false}, "refused": {false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			namespace := w.Namespace
			if w.AllowCrossNamespaceRefs = !tc.refused; tc.refused {
				namespace = w.NewNamespace()
			}
			app := w.NewKustomization("apps", nil)
			from := w.ClosedGate("from", named("apps"))
			w.GateIn(namespace, "to", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Suspend: tc.suspended})
			w.Reconcile(from)
			w.name(app, namespace+"/to")
			w.Open(from, start)
			w.Reconcile(from)
			if w.Suspended(app) != tc.waits {
				t.Errorf("got %+v", w.Suspension(app))
			}
		})
	}
}
