package controllers_test

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletedGateReleasesOnlyTargetsWithoutOtherGates(t *testing.T) {
	w := newWorld(t)
	both, mine, foreign := w.NewKustomization("both", nil), w.NewKustomization("mine", nil), w.NewKustomization("foreign", nil)
	w.Suspend(foreign)
	a, b := w.ClosedGate("a", all()), w.ClosedGate("b", named("both"))
	w.Reconcile(a)
	w.Reconcile(b)
	w.ExpectHeld(both, a, b)

	w.Must(cluster.Client.Delete(w.Context(), a))
	w.Writes.Before = failing("apply Kustomization/mine")
	if _, err := w.Try(a); err == nil {
		t.Error("no error although a target could not be released")
	}
	if err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(a), a); err != nil {
		t.Errorf("the finalizer does not wait for the release: %v", err)
	}
	w.Writes.Reset()
	w.Reconcile(a)
	if err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(a), a); !apierrors.IsNotFound(err) {
		t.Errorf("the gate is not gone: %v, finalizers %q", err, a.Finalizers)
	}
	w.ExpectReleased(mine, a)
	w.ExpectHeld(both, b)
	w.Expect(foreign, userSuspended)

	// The same without the finalizer.
	c := w.ClosedGate("c", all())
	w.Reconcile(c)
	w.ExpectHeld(both, b, c)
	w.Must(cluster.Client.Delete(w.Context(), c))
	w.Edit(c, func() { c.Finalizers = nil })
	w.ExpectHolder(mine, c)
	w.Reconcile(c)
	w.ExpectReleased(mine, c)
	w.ExpectHeld(both, b)
}
