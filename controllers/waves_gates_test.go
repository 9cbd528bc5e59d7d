package controllers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestClosingAtAnyMomentHoldsWhatIsLeft(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.open(g, start)
	w.reconcile(g)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.says(apps["b"], metav1.ConditionFalse, "path not found")
	w.lookAgain(g, apps["a"], apps["b"])
	w.in(time.Minute)
	w.close(g, w.clock.Now())
	w.reconcile(g)
	w.reconcile(g)
	w.expectWaves(g, apps, "abcde", `one 1/2, done []`)
	if conditions.Has(g, v1alpha1.ReleaseStoppedCondition) {
		t.Errorf("%+v", g.Status.Conditions)
	}
	w.in(2 * time.Minute)
	w.open(g, w.clock.Now())
	w.reconcile(g)
	w.expectWaves(g, apps, "cde", `one 0/2, done [], a Progressing, b Progressing`)
}

// Within a wave the order of dependsOn counts, and the pace.
func TestAWaveGoesAlongDependsOnAndAtItsPace(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.flux(apps["a"], `{"spec":{"dependsOn":[{"name":"b"}]}}`)
	w.flux(apps["c"], `{"spec":{"dependsOn":[{"name":"e"}]}}`) // of a later wave: Flux alone waits for it
	w.Edit(g, func() {
		g.Spec.Release.PerMinute = 2
		g.Spec.Release.Waves[0].Soak = nil
	})
	w.open(g, start)
	w.reconcile(g)
	w.expectWaves(g, apps, "acde", `one 0/2, done [], b Progressing, a Held`)
	w.says(apps["b"], metav1.ConditionTrue, "Applied revision: v2")
	w.in(10 * time.Second)
	w.lookAgain(g, apps["b"])
	w.expectWaves(g, apps, "acde", `one 1/2, done [], a Held`)
	w.in(30 * time.Second)
	w.reconcile(g)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.in(59 * time.Second)
	w.lookAgain(g, apps["a"])
	w.expectWaves(g, apps, "cde", `two 0/2, done ["one"], c Held, d Held`)
	w.in(60 * time.Second)
	w.reconcile(g)
	w.expectWaves(g, apps, "de", `two 0/2, done ["one"], c Progressing, d Held`)
	w.in(90 * time.Second)
	w.reconcile(g)
	w.expectWaves(g, apps, "e", `two 0/2, done ["one"], c Progressing, d Progressing`)
}

// A target that others hold is no less part of its wave. Another Gate that opens does not let go what the waves have not come to.
func TestWhatOthersHold(t *testing.T) {
	w, g, apps := wavesWorld(t)
	other := w.ClosedGate("other", named("a"), named("c"))
	w.git(apps["b"], true)
	w.git(apps["e"], true)
	w.reconcile(other)
	w.open(g, start)
	w.reconcile(g)
	w.expectWaves(g, apps, "abcde", `one 1/2, done [], a HeldByOthers`)
	w.open(other, start)
	w.reconcile(other)
	w.reconcile(g)
	w.reconcile(other)
	w.expectWaves(g, apps, "bcde", `one 1/2, done [], a Progressing`)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["a"])
	w.in(10 * time.Minute)
	w.reconcile(g)
	w.expectWaves(g, apps, "be", `two 0/2, done ["one"], c Progressing, d Progressing`)
}

// Finished waves count as far as the waves are those of the spec.
func TestWavesThatChangeDuringARelease(t *testing.T) {
	for name, tc := range map[string]struct {
		edit       func(*v1alpha1.ReleasePolicy)
		held, want string
	}{
		"another soak": {func(p *v1alpha1.ReleasePolicy) { p.Waves[1].Soak = nil }, "e", `two 0/2, done ["one"], c Progressing, d Progressing`},
		"another name": {func(p *v1alpha1.ReleasePolicy) { p.Waves[0].Name = "first" }, "e", `first 2/2, done [], ready since 20m0s`},
		"no waves":     {func(p *v1alpha1.ReleasePolicy) { p.Waves, p.PerMinute = nil, 6000 }, "", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			w, g, apps := wavesWorld(t)
			w.open(g, start)
			w.reconcile(g)
			w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
			w.says(apps["b"], metav1.ConditionTrue, "Applied revision: v2")
			w.lookAgain(g, apps["a"], apps["b"])
			w.in(10 * time.Minute)
			w.reconcile(g)
			w.in(20 * time.Minute)
			w.Edit(g, func() { tc.edit(g.Spec.Release) })
			w.reconcile(g)
			w.in(21 * time.Minute)
			w.reconcile(g)
			w.expectWaves(g, apps, tc.held, tc.want)
		})
	}
}

// A Gate that opens and holds nothing has nothing to release: no wave waits for anything.
func TestAGateThatHoldsNothingReleasesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.kustomization("app", map[string]string{"wave": "one"})
	w.says(app, metav1.ConditionFalse, "path not found")
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", time.Hour), wave("two", 0)}},
	})
	w.reconcile(g)
	equal(t, readyOf(g), "True Succeeded: 0 of 1 targets held")
	w.expectWaves(g, map[string]*target.Object{"app": app}, "", ` 0/0, done []`)
}
