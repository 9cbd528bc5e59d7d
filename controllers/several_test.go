package controllers

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
	app := w.kustomization("apps", nil)
	b, a := w.ClosedGate("b", named("apps")), w.ClosedGate("a", named("apps"))
	w.reconcile(b)
	w.reconcile(a)
	want := key(a) + "," + key(b)
	if got := w.look(app); got.heldBy != want || got.approved != "False GateClosed Held by gates '"+key(a)+"' (closed by default), '"+key(b)+"' (closed by default)." {
		t.Errorf("got %+v", got)
	}
}

func TestTheDeletionOfAGateReleasesOnlyWhatNoOtherHolds(t *testing.T) {
	w := newWorld(t)
	both, mine, foreign := w.kustomization("both", nil), w.kustomization("mine", nil), w.kustomization("foreign", nil)
	w.suspend(foreign)
	a, b := w.ClosedGate("a", all()), w.ClosedGate("b", named("both"))
	w.reconcile(a)
	w.reconcile(b)
	w.expectHeld(both, a, b)

	w.Must(cluster.Client.Delete(w.Context(), a))
	w.writes.before = failing("apply Kustomization/mine")
	if _, err := w.try(a); err == nil {
		t.Error("no error although a target could not be released")
	}
	if err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(a), a); err != nil {
		t.Errorf("the finalizer does not wait for the release: %v", err)
	}
	w.writes.heal()
	w.reconcile(a)
	if err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(a), a); !apierrors.IsNotFound(err) {
		t.Errorf("the gate is not gone: %v, finalizers %q", err, a.Finalizers)
	}
	w.expectReleased(mine, a)
	w.expectHeld(both, b)
	w.expect(foreign, userSuspended)
}

func TestAnOrphanOfAGateDeletedByForceIsReleased(t *testing.T) {
	w := newWorld(t)
	orphan, shared := w.kustomization("orphan", nil), w.kustomization("shared", nil)
	a, b := w.ClosedGate("a", all()), w.ClosedGate("b", named("shared"))
	w.reconcile(a)
	w.reconcile(b)
	w.Must(cluster.Client.Delete(w.Context(), a))
	w.Edit(a, func() { a.Finalizers = nil })
	w.expectHolder(orphan, a)

	w.reconcile(a)
	w.expectReleased(orphan, a)
	w.expectHeld(shared, b)
}

// The cache of one shard lacks the Gates of the others.
func TestAGateThatOnlyTheCacheLacksKeepsItsHolds(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	key := client.ObjectKeyFromObject(g)
	w.Client = emptyGates{withoutGates{w.Client}}
	_, err := w.on().targets.Reconcile(w.Context(), target.KeyOf(app))
	w.Must(err)
	w.expectHeld(app, g)
	held, err := w.Targets.HeldBy(w.Context(), key.String())
	if err != nil || len(held) != 1 || held[0].GetUID() != w.reload(app).GetUID() {
		t.Errorf("got %v, %v", held, err)
	}
	if got := target.ParseHeldBy(app.GetAnnotations()[v1alpha1.HeldByAnnotation]); !slices.Equal(got, []string{key.String()}) {
		t.Errorf("held by %q", got)
	}
}
