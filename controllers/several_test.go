package controllers_test

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestATargetNamesAllGatesThatHoldIt(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	b, a := w.ClosedGate("b", named("apps")), w.ClosedGate("a", named("apps"))
	w.Reconcile(b)
	w.Reconcile(a)
	want := key(a) + "," + key(b)
	if got := w.Suspension(app); got.HeldBy != want || got.Approved != "False GateClosed Held by gates '"+key(a)+"' (closed by default), '"+key(b)+"' (closed by default)." {
		t.Errorf("got %+v", got)
	}
}

func TestTheDeletionOfAGateReleasesOnlyWhatNoOtherHolds(t *testing.T) {
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
}

func TestAnOrphanOfAGateDeletedByForceIsReleased(t *testing.T) {
	w := newWorld(t)
	orphan, shared := w.NewKustomization("orphan", nil), w.NewKustomization("shared", nil)
	a, b := w.ClosedGate("a", all()), w.ClosedGate("b", named("shared"))
	w.Reconcile(a)
	w.Reconcile(b)
	w.Must(cluster.Client.Delete(w.Context(), a))
	w.Edit(a, func() { a.Finalizers = nil })
	w.ExpectHolder(orphan, a)

	w.Reconcile(a)
	w.ExpectReleased(orphan, a)
	w.ExpectHeld(shared, b)
}

// The cache of one shard lacks the Gates of the others.
func TestAGateThatOnlyTheCacheLacksKeepsItsHolds(t *testing.T) {
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
