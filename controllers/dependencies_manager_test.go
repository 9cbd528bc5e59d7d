package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// slowly sets an interval so long that only events enqueue the Gate.
func slowly(g *v1alpha1.Gate) { g.Spec.Interval = v1alpha1.Duration{Duration: time.Hour} }

// dependenciesThroughTheCaches is a case of TestThroughTheCaches: events of its dependencies enqueue a Gate.
func dependenciesThroughTheCaches(t *testing.T, _ *world) {
	// Without targets, whose events enqueue a Gate, too.
	t.Run("the readiness changes, and the object is deleted", func(t *testing.T) {
		w := newWorld(t)
		stage := w.NewKustomization("staging", nil)
		g := w.Gate("production", v1alpha1.GateSpec{
			Default: v1alpha1.StateOpened, Interval: v1alpha1.Duration{Duration: time.Hour}, DependsOn: []v1alpha1.DependencyReference{staging()},
		})
		soonWaits := func(why string) {
			t.Helper()
			w.soonStatus(g, "waits: "+why, func(g *v1alpha1.Gate) bool { return strings.HasSuffix(opened(g), "is not ready: "+why) })
		}
		soonOpened := func() {
			t.Helper()
			w.soonStatus(g, "opened", func(g *v1alpha1.Gate) bool { return opened(g) == "True Default: Gate opened by default" })
		}
		soonWaits("has no condition Ready")
		for range 2 {
			w.reports(stage, "True", "Succeeded", "")
			soonOpened()
			w.reports(stage, "False", "BuildFailed", "no such file")
			soonWaits("BuildFailed: no such file")
		}
		w.reports(stage, "True", "Succeeded", "")
		soonOpened()
		w.Must(cluster.Client.Delete(w.Context(), &stage.Unstructured))
		soonWaits("does not exist")
		stage = w.NewKustomization("staging", nil)
		soonWaits("has no condition Ready")
		w.reports(stage, "True", "Succeeded", "")
		soonOpened()
	})

	t.Run("a field changes that no hold needs, in another namespace", func(t *testing.T) {
		w := newWorld(t)
		app, stage := w.NewKustomization("apps", nil), w.NewKustomizationIn(w.NewNamespace(), "staging", nil)
		ref := staging("dep.spec.interval == '2h' || 'promote' in dep.metadata.annotations")
		ref.Namespace = stage.GetNamespace()
		g := w.watchingGate(ref)
		w.Edit(g, func() { slowly(g) })
		w.soonHeld(app, g)
		w.PatchAsFlux(stage, `{"spec":{"interval":"2h"}}`)
		w.soonFree(app)
		w.PatchAsFlux(stage, `{"spec":{"interval":"1h"}}`)
		w.soonHeld(app, g)
		w.PatchAsFlux(stage, `{"metadata":{"annotations":{"promote":"yes"}}}`)
		w.soonFree(app)
	})

	t.Run("the spec refers to another object", func(t *testing.T) {
		w := newWorld(t)
		app, stage, other := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil), w.NewKustomization("other", nil)
		w.reports(other, "True", "Succeeded", "")
		g := w.watchingGate(staging())
		w.Edit(g, func() { slowly(g) })
		w.soonHeld(app, g)
		w.Edit(g, func() { g.Spec.DependsOn[0].Name = "other" })
		w.soonFree(app)
		w.reports(stage, "True", "Succeeded", "")
		w.reports(other, "False", "BuildFailed", "no such file")
		w.soonHeld(app, g)
	})
}

func TestDependencyKindInstalledLater(t *testing.T) {
	removePolicies(t)
	t.Cleanup(func() { installPolicies(t) })
	startManager(t, cluster)
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.watchingGate(v1alpha1.DependencyReference{Kind: "ImagePolicy", Name: "podinfo"})
	w.Edit(g, func() { slowly(g) })
	missing := func(g *v1alpha1.Gate) bool {
		return slices.Equal(failuresOf(g), []string{"ImagePolicy/podinfo CRDNotFound"}) && strings.Contains(opened(g), "is not installed")
	}
	w.soonHeld(app, g)
	w.soonStatus(g, "the missing kind is reported", missing)

	installPolicies(t)
	w.soonStatus(g, "the kind is there, the object is not", func(g *v1alpha1.Gate) bool {
		return len(g.Status.TargetFailures()) == 0 && strings.HasSuffix(opened(g), "is not ready: does not exist")
	})
	policy := w.imagePolicy("podinfo", "v1")
	w.reports(policy, "True", "Succeeded", "")
	w.soonFree(app)
	removePolicies(t)
	w.soonHeld(app, g)
	w.soonStatus(g, "the kind is missing again", missing)
}
