package controllers_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// reaching returns a world whose Gates and objects may refer to other namespaces.
func reaching(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.AllowCrossNamespaceRefs = true
	return w
}

func TestTargetsAreSelectedAndReleased(t *testing.T) {
	w := newWorld(t)
	a, b, c := w.NewKustomization("a", nil), w.NewKustomization("b", map[string]string{"tier": "critical"}), w.NewKustomization("c", map[string]string{"tier": "other"})
	g := w.ClosedGate("production")
	for name, tc := range map[string]struct {
		targets []v1alpha1.TargetReference
		held    []*target.Object
	}{
		"by name and labels":          {[]v1alpha1.TargetReference{named("a"), all("tier", "critical")}, []*target.Object{a, b}},
		"by name, * and labels, once": {[]v1alpha1.TargetReference{named("a"), all(), all("tier", "critical"), named("a")}, []*target.Object{a, b, c}},
		"by another apiVersion":       {[]v1alpha1.TargetReference{{APIVersion: "kustomize.toolkit.fluxcd.io/v9", Kind: "Kustomization", Name: "b"}}, []*target.Object{b}},
	} {
		w.Edit(g, func() { g.Spec.Targets = tc.targets })
		w.Reconcile(g)
		n := int64(len(tc.held))
		if got, want := g.Status.Targets.TargetCounts, (v1alpha1.TargetCounts{Total: n, Held: n}); got != want || !conditions.IsReady(g) || len(g.Status.TargetFailures()) > 0 {
			t.Errorf("%s: %+v, ready is %q, failures %v", name, got, conditions.GetMessage(g, meta.ReadyCondition), g.Status.TargetFailures())
		}
		for _, obj := range []*target.Object{a, b, c} {
			if slices.Contains(tc.held, obj) {
				w.ExpectHeld(obj, g)
			} else if w.Suspended(obj) {
				t.Errorf("%s: %s is held", name, obj.GetName())
			}
		}
	}
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{all("tier", "critical")} })
	w.Reconcile(g)
	w.ExpectReleased(a, g)
	w.ExpectHeld(b, g)
	b.SetLabels(nil)
	w.Git(b)
	w.Reconcile(g)
	w.ExpectReleased(b, g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{})
}

func TestTargetUnderDeletionIsNotHeld(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	app.SetFinalizers([]string{"finalizers.fluxcd.io"})
	w.Must(cluster.Client.Update(w.Context(), &app.Unstructured))
	w.Must(cluster.Client.Delete(w.Context(), &app.Unstructured))
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.ExpectUntouched(app)
	if got := g.Status.Targets.Held; got != 0 {
		t.Errorf("%d held", got)
	}
	app.SetFinalizers(nil)
	w.Must(cluster.Client.Update(w.Context(), &app.Unstructured))
	err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(app), app)
	if !apierrors.IsNotFound(err) {
		t.Errorf("still there: %v", err)
	}
}

func TestTargetDeletedBeforeWriteIsNoFailure(t *testing.T) {
	for _, at := range []string{"apply Kustomization", "patch-status Kustomization"} {
		t.Run(at, func(t *testing.T) {
			w := newWorld(t)
			app, other := w.NewKustomization("apps", nil), w.NewKustomization("other", nil)
			g := w.ClosedGate("production", named("apps"), named("other"))
			w.Writes.Before = once(at+"/apps", func() error { return cluster.Client.Delete(w.Context(), &app.Unstructured) })
			w.Reconcile(g)
			w.ExpectHeld(other, g)
			err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(app), app)
			if !apierrors.IsNotFound(err) {
				t.Errorf("a deleted target is back: %v", err)
			}
			if len(g.Status.TargetFailures()) > 0 {
				t.Errorf("failures %v", g.Status.TargetFailures())
			}
		})
	}
}
