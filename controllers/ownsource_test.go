package controllers_test

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
)

// appliedBy sets the labels that Flux sets on objects that it applies.
func (w *world) appliedBy(g *v1alpha1.Gate, group, name string) {
	w.Helper()
	w.Edit(g, func() {
		g.Labels = map[string]string{group + ".toolkit.fluxcd.io/name": name, group + ".toolkit.fluxcd.io/namespace": w.Namespace}
	})
}

func TestGateWarnsAboutHeldOwnSource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.NewKustomization("flux-system", nil)
	source := v1alpha1.TargetReference{Kind: "GitRepository", Name: "none"}
	g := w.ClosedGate("production", named("flux-system"))
	w.Reconcile(g)
	if conditions.Has(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Error("the condition is set, but no Kustomization applies the Gate")
	}
	expect := func(what, names string) {
		t.Helper()
		w.FakeClock.SetTime(w.FakeClock.Now().Add(applierMaxAge))
		w.Events.Take("")
		was := conditions.IsTrue(w.GetGate(client.ObjectKeyFromObject(g)), v1alpha1.HoldsItsOwnSourceCondition)
		w.Reconcile(g)
		c, told := conditions.Get(g, v1alpha1.HoldsItsOwnSourceCondition), w.Events.Take("Warning Gate/production")
		value, measured := w.series()["gate_holds_own_source"]
		if names == "" {
			if c != nil || len(told) > 0 || measured {
				t.Errorf("%s: %+v, %q, %v", what, c, told, value)
			}
			return
		}
		message := "Gate governs " + names + ", through which Flux applies the gate from Git: while the gate is closed, no change of the gate in Git is applied, not even one that opens it. " +
			"Apply the gate in another way, or remove that object from its targets. To open the gate: kubectl gate open production -n " + w.Namespace
		if c == nil || c.Status != "True" || c.Reason != v1alpha1.HoldsItsOwnSourceCondition || c.Message != message || value != 1 {
			t.Errorf("%s: %+v, %v", what, c, value)
		}
		if !was && !slices.Equal(told, []string{"Warning Gate/production HoldsItsOwnSource: " + message}) || was && len(told) > 0 {
			t.Errorf("%s: told %q", what, told)
		}
		live := view.NewTarget(v1alpha1.GroupVersion.WithKind(v1alpha1.GateKind))
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), live))
		if got, err := status.Compute(live); err != nil || got.Status != status.CurrentStatus {
			t.Errorf("%s: Flux waits for the gate: %+v, %v", what, got, err)
		}
		if !conditions.IsReady(g) && !view.HasEmptyReference(g) {
			t.Errorf("%s: %+v", what, g.Status.Conditions)
		}
	}
	w.appliedBy(g, "kustomize", "flux-system")
	expect("its labels say so", "Kustomization "+w.Namespace+"/flux-system")
	expect("nothing has changed", "Kustomization "+w.Namespace+"/flux-system")
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{named("apps")} })
	expect("it does not hold it any more", "")
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{all(), source} })
	expect("it holds the source, too", "Kustomization "+w.Namespace+"/flux-system and GitRepository "+w.Namespace+"/none")
	w.appliedBy(g, "kustomize", "gone")
	expect("the Kustomization is no more", "")
	w.appliedBy(g, "kustomize", "flux-system")
	expect("it is the first again", "Kustomization "+w.Namespace+"/flux-system and GitRepository "+w.Namespace+"/none")
	w.Edit(g, func() { g.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "elsewhere" })
	expect("another namespace applies it", "")
}
