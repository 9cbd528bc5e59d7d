package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestFailingTargetDelaysNoTransition(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	w.NewKustomization("broken", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", OpenPeriods: []v1alpha1.Period{dated("soon", 10*time.Second, time.Hour)},
		Targets: []v1alpha1.TargetReference{named("broken"), named("apps")},
	})
	w.Writes.Before = failing("apply Kustomization/broken")
	for range 30 { // enough for the exponential backoff to reach its maximum
		result, err := w.Try(g)
		if err == nil {
			t.Fatal("no error")
		}
		if result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
			t.Fatalf("requeue after %s, the window opens in 10s", result.RequeueAfter)
		}
	}
	w.ExpectHeld(app, g)
	w.In(10 * time.Second)
	_, _ = w.Try(g)
	w.ExpectReleased(app, g)
}

// crowd fills the annotations of an object and leaves room for some bytes.
func (w *world) crowd(obj *target.Object, room int) {
	w.Helper()
	for key, value := range w.Reload(obj).GetAnnotations() {
		room += len(key) + len(value)
	}
	w.PatchAsFlux(obj, `{"metadata":{"annotations":{"big":"`+strings.Repeat("x", 256*1024-len("big")-room)+`"}}}`)
}

// Without a rule, each Gate would add its own name and remove the others, because there is no room for all.
func TestGatesWithoutSpaceForNamesSettle(t *testing.T) {
	for name, room := range map[string]int{"for none": 0, "for one of two": len(v1alpha1.HeldByAnnotation) + len("world-abcde/a")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			w.crowd(app, room)
			a, b := w.ClosedGate("a", all()), w.ClosedGate("b", all())
			for range 2 {
				w.Reconcile(a)
				w.Reconcile(b)
			}
			version := w.Reload(app).GetResourceVersion()
			w.Reconcile(a)
			w.Reconcile(b)
			if w.Reload(app).GetResourceVersion() != version {
				t.Error("written again although nothing changed")
			}
			w.Open(a, start)
			w.Reconcile(a)
			w.Reconcile(b)
			w.Reconcile(a)
			if l := w.Suspension(app); l.Suspend != true || strings.Contains(l.Approved, key(a)) || strings.Contains(l.HeldBy, key(a)) || a.Status.Targets.Held > 0 {
				t.Errorf("gate a is open: %+v, %+v", l, a.Status.Targets)
			}
			w.Must(cluster.Client.Delete(w.Context(), a))
			w.Reconcile(a)
			if !w.gone(a) || !w.Suspended(app) {
				t.Error("gate a is not gone, or the target is free")
			}
			w.Open(b, start)
			w.Reconcile(b)
			if w.Suspended(app) {
				t.Error("not released")
			}
		})
	}
}

// emptyGates is a client whose cache has no Gates.
type emptyGates struct{ client.Client }

func (emptyGates) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
