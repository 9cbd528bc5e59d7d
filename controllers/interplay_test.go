package controllers_test

import (
	"strings"
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

func TestGatedSourceAwaitingApprovalStopsNoRelease(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	f.Must(f.Merge(f.g, `{"metadata":{"labels":{"wave":"one"}}}`))
	app := f.NewKustomization("c", map[string]string{"wave": "two"})
	f.says(app, metav1.ConditionTrue, "Applied revision: v1")
	g := f.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: time.Hour}, Targets: []v1alpha1.TargetReference{all(), allGatedSources},
		Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{wave("one", 0), wave("two", 0)}},
	})
	f.looks(g)
	f.isAt("", "Approved False WaitingApproval")
	f.Events.Take("")
	f.Open(g, start)
	for range 3 {
		f.Reconcile(g)
		f.looks(g)
	}
	f.expectWaves(g, map[string]*target.Object{"c": app}, "c", `one 0/1, done [], apps Progressing`)
}

func TestPassOfTargetWaitingForWaveIsRefused(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.Open(g, start)
	w.Reconcile(g)
	w.Events.Take("")
	w.askPass(apps["c"], w.In(time.Minute), "alice", "hotfix")
	w.Reconcile(g)
	w.Reconcile(g)
	if got := w.Events.Take(v1alpha1.PassRefusedReason); len(got) == 0 || !strings.Contains(got[0], "it waits for a release slot") {
		t.Errorf("%q", got)
	}
}

func TestAnnouncementListsWaitingGatedSources(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.looks()
	g := f.telling(nil, func(s *v1alpha1.GateSpec) {
		s.Default, s.OpenPeriods = v1alpha1.StateClosed, []v1alpha1.Period{dated("night", hours(2), hours(4))}
		s.Targets = []v1alpha1.TargetReference{allGatedSources}
		s.NotifyBefore = leads(1)
	})
	f.Reconcile(g)
	f.push("b")
	f.looks(g)
	f.isAt("a", "Approved False GateClosed")
	f.In(hours(1) + time.Minute)
	f.Events.Take("")
	f.looks(g)
	got := f.Events.Take(v1alpha1.GateOpensSoonReason)
	if len(got) == 0 || !strings.Contains(got[0], "GatedSource") || strings.Contains(got[0], "nothing is held") {
		t.Errorf("%q", got)
	}
}
