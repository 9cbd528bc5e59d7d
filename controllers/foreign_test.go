package controllers_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// userSuspended is a target that flux suspend holds and no Gate ever touched.
var userSuspended = suspension{Suspend: true, Owners: []string{"flux"}}

func TestASuspendOfSomebodyElseIsNeverTouchedNorResumed(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.Suspend(app)
	version := w.Reload(app).GetResourceVersion()
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.Expect(app, userSuspended)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, SuspendedByOthers: 1})

	w.Open(g, w.In(hours(1)))
	w.Reconcile(g)
	w.Expect(app, userSuspended)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1})
	w.Close(g, w.In(hours(2)))
	w.Reconcile(g)
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Reconcile(g)
	w.Expect(app, userSuspended)
	if got := app.GetResourceVersion(); got != version {
		t.Errorf("the target was written: version %s, was %s", got, version)
	}
	if events := w.Events.Take("Kustomization"); len(events) > 0 {
		t.Errorf("events %q", events)
	}
}

func TestATargetSuspendedInGitIsForeign(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.Git(app, true)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.Expect(app, suspension{Suspend: true, Owners: []string{"kustomize-controller"}})

	w.Git(app) // Git no longer suspends it
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.ExpectReleased(app, g)
}

func TestAForeignTargetThatIsResumedWhileTheGateIsClosedBecomesHeld(t *testing.T) {
	for _, policy := range []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeLenient} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			w.Suspend(app)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: policy, Targets: []v1alpha1.TargetReference{named("apps")}})
			w.Reconcile(g)
			w.Expect(app, userSuspended)
			w.Resume(app)
			w.Events.Take("")
			w.Reconcile(g)
			w.ExpectHeld(app, g)
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})
			if events := w.Events.Take("Warning"); len(events) > 0 {
				t.Errorf("nobody resumed a held target, but %q", events)
			}
		})
	}
}

func TestASuspendThatGitAddsDuringAHoldOutlivesIt(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.Git(app, true)
	w.Reconcile(g)
	if got := w.Suspension(app).Owners; len(got) != 2 {
		t.Fatalf("owners of spec.suspend are %q", got)
	}
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, Held: 1})

	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.Expect(app, suspension{Suspend: true, Owners: []string{"kustomize-controller"}, Approved: "True GateOpened Released: gate '" + key(g) + "' is open."})
}

func TestAResumeByGitIsOverridden(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.Git(app, false)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.ExpectHeld(app, g)

	w.Git(app, false) // drift correction
	if w.Suspended(app) {
		t.Fatal("this test is about a target that Git resumes")
	}
	w.Events.Take("")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if events := w.Events.Take("Warning Kustomization/apps"); len(events) != 1 {
		t.Errorf("events %q", events)
	}

	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.Git(app, false)
	if w.Suspended(app) {
		t.Error("still suspended")
	}
}

func TestAUserWhoSuspendsAfterResumingHasTakenOver(t *testing.T) {
	for _, policy := range []v1alpha1.Mode{v1alpha1.ModeEnforce, v1alpha1.ModeLenient} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Mode: policy, Targets: []v1alpha1.TargetReference{named("apps")}})
			w.Reconcile(g)
			w.Resume(app)
			w.Suspend(app)
			w.Reconcile(g)
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: 1, SuspendedByOthers: 1})
			w.Expect(app, suspension{Suspend: true, Owners: []string{"flux"}, Approved: "True Resumed Resumed and then suspended manually. Gates leave it alone until it is resumed."})
			w.Open(g, w.FakeClock.Now())
			w.Reconcile(g)
			if got := w.Suspension(app); got.Suspend != true || got.Owners[0] != "flux" {
				t.Errorf("the gate resumed what a user suspended: %+v", got)
			}
			w.Must(cluster.Client.Delete(w.Context(), g))
			w.Reconcile(g)
			if !w.Suspended(app) {
				t.Error("the deletion of the gate resumed what a user suspended")
			}
		})
	}
}

func TestAHoldWhoseAnnotationIsRemovedIsReleasedAllTheSame(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	strip := `{"metadata":{"annotations":{"` + v1alpha1.HeldByAnnotation + `":null}}}`
	w.PatchAsFlux(app, strip)
	w.Reconcile(g)
	w.ExpectHeld(app, g)

	w.PatchAsFlux(app, strip)
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.ExpectReleased(app, g)
}
