package controllers

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// userSuspended is a target that flux suspend holds and no Gate ever touched.
var userSuspended = look{suspend: true, owners: []string{"flux"}}

func TestASuspendOfSomebodyElseIsNeverTouchedNorResumed(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	w.suspend(app)
	version := w.reload(app).GetResourceVersion()
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.expect(app, userSuspended)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, SuspendedByOthers: 1})

	w.open(g, w.in(hours(1)))
	w.reconcile(g)
	w.expect(app, userSuspended)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1})
	w.close(g, w.in(hours(2)))
	w.reconcile(g)
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.reconcile(g)
	w.expect(app, userSuspended)
	if got := app.GetResourceVersion(); got != version {
		t.Errorf("the target was written: version %s, was %s", got, version)
	}
	if events := w.events.take("Kustomization"); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

func TestATargetSuspendedInGitIsForeign(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	w.git(app, true)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.expect(app, look{suspend: true, owners: []string{"kustomize-controller"}})

	w.git(app) // Git no longer suspends it
	w.reconcile(g)
	w.expectHeld(app, g)
	w.open(g, w.clock.Now())
	w.reconcile(g)
	w.expectReleased(app, g)
}

func TestAForeignTargetThatIsResumedWhileTheGateIsClosedBecomesHeld(t *testing.T) {
	for _, policy := range []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeLenient} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			app := w.kustomization("apps", nil)
			w.suspend(app)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: policy, Targets: []v1alpha1.TargetReference{named("apps")}})
			w.reconcile(g)
			w.expect(app, userSuspended)
			w.resume(app)
			w.events.take("")
			w.reconcile(g)
			w.expectHeld(app, g)
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})
			if events := w.events.take("Warning"); len(events) > 0 {
				t.Errorf("nobody resumed a held target, but %q", events)
			}
		})
	}
}

func TestASuspendThatGitAddsDuringAHoldOutlivesIt(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.git(app, true)
	w.reconcile(g)
	if got := w.look(app).owners; len(got) != 2 {
		t.Fatalf("owners of spec.suspend are %q", got)
	}
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})

	w.open(g, w.clock.Now())
	w.reconcile(g)
	w.expect(app, look{suspend: true, owners: []string{"kustomize-controller"}, approved: "True GateOpened Released: gate '" + key(g) + "' is open."})
}

func TestAResumeByGitIsOverridden(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	w.git(app, false)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.expectHeld(app, g)

	w.git(app, false) // drift correction
	if w.suspended(app) {
		t.Fatal("this test is about a target that Git resumes")
	}
	w.events.take("")
	w.reconcile(g)
	w.expectHeld(app, g)
	if events := w.events.take("Warning Kustomization/apps"); len(events) != 1 {
		t.Errorf("events %q", events)
	}

	w.open(g, w.clock.Now())
	w.reconcile(g)
	w.git(app, false)
	if w.suspended(app) {
		t.Error("still suspended")
	}
}

func TestAUserWhoSuspendsAfterResumingHasTakenOver(t *testing.T) {
	for _, policy := range []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeLenient} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			app := w.kustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: policy, Targets: []v1alpha1.TargetReference{named("apps")}})
			w.reconcile(g)
			w.resume(app)
			w.suspend(app)
			w.reconcile(g)
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, SuspendedByOthers: 1})
			w.expect(app, look{suspend: true, owners: []string{"flux"}, approved: "True Resumed Resumed and then suspended manually. Gates leave it alone until it is resumed."})
			w.open(g, w.clock.Now())
			w.reconcile(g)
			if got := w.look(app); got.suspend != true || got.owners[0] != "flux" {
				t.Errorf("the gate resumed what a user suspended: %+v", got)
			}
			w.Must(cluster.Client.Delete(w.Context(), g))
			w.reconcile(g)
			if !w.suspended(app) {
				t.Error("the deletion of the gate resumed what a user suspended")
			}
		})
	}
}

func TestAHoldWhoseAnnotationIsRemovedIsReleasedAllTheSame(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	strip := `{"metadata":{"annotations":{"` + v1alpha1.HeldByAnnotation + `":null}}}`
	w.flux(app, strip)
	w.reconcile(g)
	w.expectHeld(app, g)

	w.flux(app, strip)
	w.open(g, w.clock.Now())
	w.reconcile(g)
	w.expectReleased(app, g)
}
