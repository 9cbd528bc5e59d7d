package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestGatedSourceIsReadyInWaveOnceFetched(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.Must(f.Merge(f.g, `{"metadata":{"labels":{"wave":"one"}}}`))
	f.looks()
	f.isAt("a")
	f.fetches("apps-gated", commit("a"))
	f.looks()
	app := f.NewKustomization("c", map[string]string{"wave": "two"})
	f.says(app, metav1.ConditionTrue, "Applied revision: v1")
	g := f.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: time.Hour}, Targets: []v1alpha1.TargetReference{all(), allGatedSources},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", 0), wave("two", 0)}},
	})
	f.Reconcile(g)
	f.push("b")
	f.looks(g)
	f.isAt("a", "Approved False GateClosed")
	apps := map[string]*target.Object{"c": app}
	f.expectWaves(g, apps, "c", "none")
	f.Open(g, start)
	for range 4 {
		f.Reconcile(g)
		f.looks(g)
	}
	f.isAt("b", "Ready Unknown Progressing")
	f.expectWaves(g, apps, "c", `one 0/1, done [], apps Progressing`)
}
