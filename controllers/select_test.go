package controllers_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestTargetsAreSelected(t *testing.T) {
	critical := map[string]string{"tier": "critical", "team": "a"}
	for name, tc := range map[string]struct {
		targets []v1alpha1.TargetReference
		held    []string
	}{
		"by name":                       {[]v1alpha1.TargetReference{named("a")}, []string{"a"}},
		"by *":                          {[]v1alpha1.TargetReference{all()}, []string{"a", "b", "c"}},
		"by labels":                     {[]v1alpha1.TargetReference{all("tier", "critical")}, []string{"a", "b"}},
		"by name, * and labels, once":   {[]v1alpha1.TargetReference{named("a"), all(), all("tier", "critical"), named("a")}, []string{"a", "b", "c"}},
		"by an apiVersion of no matter": {[]v1alpha1.TargetReference{{APIVersion: "kustomize.toolkit.fluxcd.io/v9", Kind: "Kustomization", Name: "b"}}, []string{"b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.NewKustomization("a", critical)
			w.NewKustomization("b", map[string]string{"tier": "critical"})
			w.NewKustomization("c", map[string]string{"tier": "other"})
			g := w.ClosedGate("production", tc.targets...)
			w.Reconcile(g)
			n := int64(len(tc.held))
			equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{Total: n, Held: n})
			if !conditions.IsTrue(g, meta.ReadyCondition) || len(g.Status.TargetFailures()) > 0 {
				t.Errorf("not ready: %s, %v", conditions.GetMessage(g, meta.ReadyCondition), g.Status.TargetFailures())
			}
			for _, name := range []string{"a", "b", "c"} {
				obj := inGit(w.Namespace, name, nil)
				want := false
				for _, held := range tc.held {
					want = want || held == name
				}
				if want {
					w.ExpectHeld(obj, g)
				} else {
					w.ExpectUntouched(obj)
				}
			}
		})
	}
}

// reaching returns a world whose Gates and objects may refer to other namespaces.
func reaching(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.AllowCrossNamespaceRefs = true
	return w
}

func TestTargetsOfOtherNamespaces(t *testing.T) {
	w := reaching(t)
	other := w.NewNamespace()
	here, there := w.NewKustomization("apps", nil), inGit(other, "apps", nil)
	w.Must(gitApply(w.Context(), there))
	ref := named("apps")
	ref.Namespace = other
	g := w.ClosedGate("production", ref)
	w.Reconcile(g)
	w.ExpectHeld(there, g)
	w.ExpectUntouched(here)
}

func TestATargetThatIsNoLongerNamedIsReleased(t *testing.T) {
	w := newWorld(t)
	a, b := w.NewKustomization("a", nil), w.NewKustomization("b", map[string]string{"tier": "critical"})
	g := w.ClosedGate("production", named("a"), all("tier", "critical"))
	w.Reconcile(g)
	w.ExpectHeld(a, g)
	w.ExpectHeld(b, g)

	w.Edit(g, func() { g.Spec.Targets = g.Spec.Targets[1:] })
	w.Reconcile(g)
	w.ExpectReleased(a, g)
	w.ExpectHeld(b, g)

	b.SetLabels(nil)
	w.Git(b)
	w.Reconcile(g)
	w.ExpectReleased(b, g)
	equal(t, g.Status.Targets.TargetCounts, v1alpha1.TargetCounts{})
}

func TestATargetUnderDeletionIsNotHeld(t *testing.T) {
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

func TestATargetThatVanishesBetweenReadingAndWritingIsNoFailure(t *testing.T) {
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
