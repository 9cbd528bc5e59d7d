package controllers_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
)

// A cache may be behind by seconds. If a status must change back to the one in the cache, no write appears to be needed.
func TestStatusMissingFromCacheIsRepaired(t *testing.T) {
	t.Parallel()
	t.Run("Gate", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		w.Reconcile(g)
		stale := g.DeepCopy()
		w.Resume(app)
		w.Writes.Before = failing("apply Kustomization")
		if _, err := w.Try(g); err == nil || conditions.IsReady(g) {
			t.Fatal("it is ready")
		}
		w.Writes.Reset()
		w.Client = behind{w.Client, stale}
		w.Reconcile(g)
		w.ExpectHeld(app, g)
		if !conditions.IsReady(g) || conditions.IsReconciling(g) || len(g.Status.TargetFailures()) > 0 || g.Status.Targets.Failed > 0 {
			t.Errorf("conditions %v, failures %q, %+v", g.Status.Conditions, failuresOf(g), g.Status.Targets)
		}
	})
	t.Run("GateException", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		g := w.ClosedGate("production")
		e := w.exception("hotfix", openingIt, 0, hours(1))
		r := w.reporter()
		report := func(ready bool) {
			t.Helper()
			_, err := r.Reconcile(w.Context(), requestFor(e))
			w.Must(err)
			w.Read(e)
			if conditions.IsReady(e) != ready {
				t.Errorf("ready is not to be %t: %v", !ready, e.Status.Conditions)
			}
		}
		report(true)
		stale := e.DeepCopy()
		w.Edit(g, func() { g.Spec.Suspend = true })
		report(false)
		w.Edit(g, func() { g.Spec.Suspend = false })
		r.Client = behind{w.Client, stale}
		report(true)
	})
}

// conflictingStatusThroughTheCaches is a case of TestThroughTheCaches. A process that is no longer the leader may still write a status,
// which may reach the cache of the leader only after its own write.
func conflictingStatusThroughTheCaches(t *testing.T, w *world) {
	g := w.ClosedGate("production", all())
	e := w.exception("hotfix", openingIt, 0, hours(1))
	for _, obj := range []interface {
		client.Object
		conditions.Setter
	}{g, e} {
		ready := func() bool {
			w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj))
			return conditions.IsReady(obj)
		}
		for range 3 {
			soon(t, obj.GetName()+" is ready", ready)
			before, ok := obj.DeepCopyObject().(client.Object)
			if !ok {
				t.Fatal("no object")
			}
			conditions.MarkFalse(obj, meta.ReadyCondition, "Other", "written by another process")
			w.Must(cluster.Client.Status().Patch(w.Context(), obj, client.MergeFrom(before)))
		}
		soon(t, obj.GetName()+" is ready", ready)
	}
}
