package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Not even who may patch there, and so passes the policy, holds from one namespace what is in another: the controller would do
// so with its own permissions.
func TestWhoMayEditOneNamespaceHoldsNothingInAnother(t *testing.T) {
	w, platform := newWorld(t), newWorld(t)
	held := platform.Kustomization("apps")
	platform.Create(held)
	edith := w.as("edith", editor, viewer)
	platform.mayOn("edith", "patch", apps)
	platform.mayOn("edith", "get", apps)
	all := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, Namespace: platform.Namespace}
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: w.Namespace}, Spec: v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all},
		DependsOn: []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "apps", Namespace: platform.Namespace}},
	}}
	w.Must(edith.Client.Create(w.Context(), g))
	// The failures are written after the targets.
	w.Eventually("both references are refused", func() error {
		w.Read(g)
		refused := func(name string) bool {
			return slices.ContainsFunc(g.Status.TargetFailures(), func(f v1alpha1.TargetFailure) bool {
				return f.Name == name && f.Reason == v1alpha1.AccessDeniedReason
			})
		}
		if !refused(v1alpha1.AnyName) || !refused("apps") {
			return fmt.Errorf("failures are %+v", g.Status.TargetFailures())
		}
		return nil
	})
	want := fmt.Sprintf("targets in namespace %q cannot be held from namespace %q: the controller runs with --no-cross-namespace-refs",
		platform.Namespace, w.Namespace)
	if ready := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition); ready == nil ||
		ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, want) {
		t.Errorf("Ready is %+v, want False with %q", ready, want)
	}
	before := held.GetResourceVersion()
	if w.Read(held); held.GetResourceVersion() != before {
		t.Errorf("written: %v", held.Object)
	}
}
