package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
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

// flaky counts reads past the cache, which fail while broken is set.
type flaky struct {
	view.TargetReader
	n      *int
	broken *bool
}

// Read implements TargetReader.
func (u flaky) Read(ctx context.Context, adapter target.Adapter, key types.NamespacedName) (*unstructured.Unstructured, error) {
	*u.n++
	if *u.broken {
		return nil, errBroken
	}
	return u.TargetReader.Read(ctx, adapter, key)
}

func TestUnreadableApplierKeepsConditionAndDelaysNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("flux-system", nil)
	n, broken := 0, false
	w.Targets = flaky{w.Targets, &n, &broken}
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{all()}})
	w.appliedBy(g, "kustomize", "flux-system")
	w.Reconcile(g)
	if n != 1 || !conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition) {
		t.Fatalf("read %d times, %+v", n, g.Status.Conditions)
	}
	w.FakeClock.SetTime(start.Add(hours(1)))
	w.Reconcile(g)
	if n != 1 {
		t.Errorf("read %d times although nothing has changed", n)
	}
	broken = true
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateClosed })
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if !conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition) || !conditions.IsReady(g) {
		t.Errorf("%+v", g.Status.Conditions)
	}
	broken, n = false, 0
	w.Reconcile(g)
	if n != 1 {
		t.Errorf("read %d times although it could not be read", n)
	}
	for _, name := range []string{"second", "third"} {
		other := w.ClosedGate(name, all())
		w.appliedBy(other, "kustomize", "flux-system")
		w.Reconcile(other)
	}
	if n != 1 {
		t.Errorf("what applies three gates is read %d times at the same time", n)
	}
}

// A user who forges the labels of Flux must not learn from the condition what is in other namespaces.
func TestApplierOutOfReachIsNotRead(t *testing.T) {
	w := newWorld(t)
	other := w.NewNamespace()
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps"))
	source.Object["spec"] = map[string]any{"interval": "1h", "url": "https://example.com/apps"}
	w.Create(source)
	applier := inGit(other, "apps", nil)
	applier.Object["spec"] = map[string]any{"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "apps", "namespace": w.Namespace}}
	w.Create(&applier.Unstructured)
	for allowed, want := range map[bool]bool{false: false, true: true} {
		w.AllowCrossNamespaceRefs = allowed
		g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("production-%t", allowed), Namespace: w.Namespace, Labels: map[string]string{
			"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": other,
		}}, Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "GitRepository", Name: "*"}}}}
		w.Create(g)
		w.Reconcile(g)
		if got := conditions.IsTrue(g, v1alpha1.HoldsItsOwnSourceCondition); got != want {
			t.Errorf("cross-namespace references allowed: %t, the condition says %t", allowed, got)
		}
	}
}
