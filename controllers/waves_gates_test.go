package controllers_test

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
	w.Open(g, start)
	w.Reconcile(g)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.says(apps["b"], metav1.ConditionFalse, "path not found")
	w.lookAgain(g, apps["a"], apps["b"])
	w.In(time.Minute)
	w.Close(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.Reconcile(g)
	w.expectWaves(g, apps, "abcde", `one 1/2, done []`)
	if conditions.Has(g, v1alpha1.ReleaseStoppedCondition) {
		t.Errorf("%+v", g.Status.Conditions)
	}
	w.In(2 * time.Minute)
	w.Open(g, w.FakeClock.Now())
	w.Reconcile(g)
	w.expectWaves(g, apps, "cde", `one 0/2, done [], a Progressing, b Progressing`)
}

// Within a wave the order of dependsOn counts, and the pace.
func TestAWaveGoesAlongDependsOnAndAtItsPace(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.PatchAsFlux(apps["a"], `{"spec":{"dependsOn":[{"name":"b"}]}}`)
	w.PatchAsFlux(apps["c"], `{"spec":{"dependsOn":[{"name":"e"}]}}`) // of a later wave: Flux alone waits for it
	w.Edit(g, func() {
		g.Spec.Release.PerMinute = 2
		g.Spec.Release.Waves[0].Soak = nil
	})
	w.Open(g, start)
	w.Reconcile(g)
	w.expectWaves(g, apps, "acde", `one 0/2, done [], b Progressing, a Held`)
	w.says(apps["b"], metav1.ConditionTrue, "Applied revision: v2")
	w.In(10 * time.Second)
	w.lookAgain(g, apps["b"])
	w.expectWaves(g, apps, "acde", `one 1/2, done [], a Held`)
	w.In(30 * time.Second)
	w.Reconcile(g)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.In(59 * time.Second)
	w.lookAgain(g, apps["a"])
	w.expectWaves(g, apps, "cde", `two 0/2, done ["one"], c Held, d Held`)
	w.In(60 * time.Second)
	w.Reconcile(g)
	w.expectWaves(g, apps, "de", `two 0/2, done ["one"], c Progressing, d Held`)
	w.In(90 * time.Second)
	w.Reconcile(g)
	w.expectWaves(g, apps, "e", `two 0/2, done ["one"], c Progressing, d Progressing`)
}

// A Gate that opens and holds nothing has nothing to release, so no wave waits.
func TestAGateThatHoldsNothingReleasesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("app", map[string]string{"wave": "one"})
	w.says(app, metav1.ConditionFalse, "path not found")
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", time.Hour), wave("two", 0)}},
	})
	w.Reconcile(g)
	equal(t, readyOf(g), "True Succeeded: 0 of 1 targets held")
	w.expectWaves(g, map[string]*target.Object{"app": app}, "", ` 0/0, done []`)
}
