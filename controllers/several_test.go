package controllers_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
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

// The cache of one shard does not have the Gates of the others.
func TestGateMissingFromCacheKeepsHolds(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	key := client.ObjectKeyFromObject(g)
	w.Client = emptyGates{withoutGates{w.Client}}
	_, err := w.Reconcilers().Targets.Reconcile(w.Context(), target.KeyOf(app))
	w.Must(err)
	w.ExpectHeld(app, g)
	held, err := w.Targets.HeldBy(w.Context(), key.String())
	if err != nil || len(held) != 1 || held[0].GetUID() != w.Reload(app).GetUID() {
		t.Errorf("got %v, %v", held, err)
	}
	if got := target.ParseHeldBy(app.GetAnnotations()[v1alpha1.HeldByAnnotation]); !slices.Equal(got, []string{key.String()}) {
		t.Errorf("held by %q", got)
	}
}
