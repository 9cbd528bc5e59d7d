package controllers_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reaching returns a world whose Gates and objects may refer to other namespaces.
func reaching(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.AllowCrossNamespaceRefs = true
	return w
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
