package controllers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestAGatedSourceIsReadyInItsWaveOnceItsRevisionIsFetched(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.Must(f.Merge(f.g, `{"metadata":{"labels":{"wave":"one"}}}`))
	f.looks()
	f.isAt("a")
	f.fetches("apps-gated", commit("a"))
	f.looks()
	app := f.kustomization("c", map[string]string{"wave": "two"})
	f.says(app, metav1.ConditionTrue, "Applied revision: v1")
	g := f.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: time.Hour}, Targets: []v1alpha1.TargetReference{all(), allGatedSources},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", 0), wave("two", 0)}},
	})
	f.reconcile(g)
	f.push("b")
	f.looks(g)
	f.isAt("a", "Approved False GateClosed")
	apps := map[string]*target.Object{"c": app}
	f.expectWaves(g, apps, "c", "none")
	f.open(g, start)
	for range 4 {
		f.reconcile(g)
		f.looks(g)
	}
	f.isAt("b", "Ready Unknown Progressing")
	f.expectWaves(g, apps, "c", `one 0/1, done [], apps Progressing`)
}

func TestAGatedSourceThatWaitsForApprovalStopsNoRelease(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	f.Must(f.Merge(f.g, `{"metadata":{"labels":{"wave":"one"}}}`))
	app := f.kustomization("c", map[string]string{"wave": "two"})
	f.says(app, metav1.ConditionTrue, "Applied revision: v1")
	g := f.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: time.Hour}, Targets: []v1alpha1.TargetReference{all(), allGatedSources},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", 0), wave("two", 0)}},
	})
	f.looks(g)
	f.isAt("", "Approved False WaitingApproval")
	f.events.take("")
	f.open(g, start)
	for range 3 {
		f.reconcile(g)
		f.looks(g)
	}
	f.expectWaves(g, map[string]*target.Object{"c": app}, "c", `one 0/1, done [], apps Progressing`)
}

func TestAPassOfWhatWaitsForItsWaveIsRefusedAloud(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.open(g, start)
	w.reconcile(g)
	w.events.take("")
	w.askPass(apps["c"], w.in(time.Minute), "alice", "hotfix")
	w.reconcile(g)
	w.reconcile(g)
	if got := w.events.take(v1alpha1.PassRefusedReason); len(got) == 0 || !strings.Contains(got[0], "it waits for a release slot") {
		t.Errorf("%q", got)
	}
}

func TestAWordInTimeKnowsWhatWaitsOfGatedSources(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.looks()
	g := f.telling(nil, func(s *v1alpha1.GateSpec) {
		s.Default, s.OpenPeriods = v1alpha1.StateClosed, []v1alpha1.Period{dated("night", hours(2), hours(4))}
		s.Targets = []v1alpha1.TargetReference{allGatedSources}
		s.NotifyBefore = leads(1)
	})
	f.reconcile(g)
	f.push("b")
	f.looks(g)
	f.isAt("a", "Approved False GateClosed")
	f.in(hours(1) + time.Minute)
	f.events.take("")
	f.looks(g)
	got := f.events.take(v1alpha1.GateOpensSoonReason)
	if len(got) == 0 || !strings.Contains(got[0], "GatedSource") || strings.Contains(got[0], "nothing is held") {
		t.Errorf("%q", got)
	}
}
