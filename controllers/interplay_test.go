package controllers

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestAPassThroughAnotherGateIsNoReleaseOfAWave(t *testing.T) {
	w, g, apps := wavesWorld(t)
	w.Edit(g, func() { g.Spec.Release.Waves[0].Soak = nil })
	other := w.ClosedGate("other", named("a"))
	w.reconcile(other)
	w.open(g, start)
	w.reconcile(g)
	w.reconcile(g)
	w.says(apps["b"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["b"])
	w.expectWaves(g, apps, "acde", `one 1/2, done [], a HeldByOthers`)
	w.askPass(apps["a"], w.in(time.Minute), "alice", "hotfix")
	w.reconcile(other)
	w.reconcile(g)
	w.expectWaves(g, apps, "cde", `one 1/2, done [], a HeldByOthers`)
	w.says(apps["a"], metav1.ConditionFalse, "path not found")
	w.lookAgain(g, apps["a"])
	w.reconcile(g)
	w.expectWaves(g, apps, "cde", `one 1/2, done [], a HeldByOthers`)
	w.says(apps["a"], metav1.ConditionTrue, "Applied revision: v2")
	w.lookAgain(g, apps["a"])
	w.reconcile(g)
	w.expectWaves(g, apps, "cde", `one 1/2, done [], a HeldByOthers`)
	w.fluxHandles(apps["a"], "True", "main@sha1:2")
	w.reconcile(other)
	w.reconcile(g)
	w.expectWaves(g, apps, "acde", `one 1/2, done [], a HeldByOthers`)
}

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

func TestAForgedPassOfACertificateIsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cert := w.certificate("web", nil)
	g := w.ClosedGate("production", certificates)
	w.reconcile(g)
	w.reload(cert)
	forge := func(after time.Duration) {
		since := w.in(after).UTC()
		p := verdict.Pass{State: verdict.PassInProgress, Value: since.Format(time.RFC3339), By: "bob", Reason: "forged", Since: since, Until: since.Add(time.Hour)}
		config := harness.Object("cert-manager.io/v1", "Certificate", client.ObjectKeyFromObject(cert))
		config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: key(g), v1alpha1.PassAnnotation: p.Record()})
		w.Must(cluster.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(config), client.FieldOwner("gating-controller"), client.ForceOwnership))
	}
	for n := range 3 {
		forge(time.Duration(n+1) * 50 * time.Minute)
		w.reconcile(g)
		w.reconcile(g)
		w.reload(cert)
		if _, held, _ := unstructured.NestedFieldNoCopy(cert.Object, "spec", "renewal"); !held {
			t.Error("it is not held again")
		}
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
