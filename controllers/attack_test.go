package controllers

import (
	"context"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestAFailingTargetDelaysNoEdge(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	w.kustomization("broken", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", OpenPeriods: []v1alpha1.Period{dated("soon", 10*time.Second, time.Hour)},
		Targets: []v1alpha1.TargetReference{named("broken"), named("apps")},
	})
	w.writes.before = failing("apply Kustomization/broken")
	for range 30 { // far beyond what an exponential back-off takes to be long
		result, err := w.try(g)
		if err == nil {
			t.Fatal("no error")
		}
		if result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
			t.Fatalf("requeue after %s, the window opens in 10s", result.RequeueAfter)
		}
	}
	w.expectHeld(app, g)
	w.in(10 * time.Second)
	_, _ = w.try(g)
	w.expectReleased(app, g)
}

func TestTwoGatesThatRespectAResumedTargetDoNotWriteInTurns(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	var gates []*v1alpha1.Gate
	for _, name := range []string{"a", "b"} {
		gates = append(gates, w.Gate(name, v1alpha1.GateSpec{
			Default: "closed", Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")},
		}))
		w.reconcile(gates[len(gates)-1])
	}
	w.resume(app)
	for _, g := range gates {
		w.reconcile(g)
	}
	w.writes.take("")
	for range 3 {
		for _, g := range gates {
			w.reconcile(g)
		}
	}
	if got := w.writes.take(""); len(got) > 0 {
		t.Errorf("writes: %q", got)
	}
	if w.suspended(app) {
		t.Error("held again")
	}
}

func TestWhatIsHeldWhereAccessWasDeniedSinceIsReleasedWhenTheGateOpens(t *testing.T) {
	w := reaching(t)
	other := w.NewNamespace()
	app := inGit(other, "apps", nil)
	w.git(app)
	g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps", Namespace: other}}})
	w.reconcile(g)
	w.expectHeld(app, g)
	w.AllowCrossNamespaceRefs = false
	w.reconcile(g)
	w.expectHeld(app, g)
	w.open(g, start)
	w.reconcile(g)
	w.expectReleased(app, g)
}

// Its dependency kept it from opening.
func TestAnOpeningThatDidNotComeEndsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, upstream := w.kustomization("apps", nil), w.kustomization("staging", nil)
	w.reports(upstream, "True", "Succeeded", "")
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: "closed", Mode: v1alpha1.ModeLenient, DependsOn: []v1alpha1.DependencyReference{staging()},
		OpenPeriods: []v1alpha1.Period{dated("hour", time.Hour, 2*time.Hour)}, Targets: []v1alpha1.TargetReference{named("apps")},
	})
	w.reconcile(g)
	w.resume(app)
	w.reconcile(g)
	w.reports(upstream, "False", "Failed", "broken")
	w.in(time.Hour)
	w.reconcile(g)
	if got := opened(g); !strings.HasPrefix(got, "False DependencyNotReady") || w.suspended(app) {
		t.Errorf("%s, held: %t", got, w.suspended(app))
	}
}

func TestAnObjectThatHasNoRoomForTheAnnotationIsHeldAllTheSame(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	w.flux(app, `{"metadata":{"annotations":{"big":"`+strings.Repeat("x", 256*1024-13)+`"}}}`)
	g := w.ClosedGate("production", all())
	w.reconcile(g)
	if got := w.look(app); got.suspend != true || got.heldBy != "" || len(got.owners) != 1 || got.owners[0] != v1alpha1.FieldManager {
		t.Errorf("got %+v", got)
	}
	version := app.GetResourceVersion()
	w.reconcile(g)
	if w.reload(app).GetResourceVersion() != version {
		t.Error("written again although nothing changed")
	}
	w.open(g, start)
	w.reconcile(g)
	if w.suspended(app) {
		t.Error("not released")
	}
}

// crowd leaves room for so many bytes in the annotations of an object.
func (w *world) crowd(obj *target.Object, room int) {
	w.Helper()
	for key, value := range w.reload(obj).GetAnnotations() {
		room += len(key) + len(value)
	}
	w.flux(obj, `{"metadata":{"annotations":{"big":"`+strings.Repeat("x", 256*1024-len("big")-room)+`"}}}`)
}

// Each of them would add itself, and take the others out because there is no room.
func TestSeveralGatesForWhichThereIsNoRoomSettle(t *testing.T) {
	for name, room := range map[string]int{"for none": 0, "for one of two": len(v1alpha1.HeldByAnnotation) + len("world-abcde/a")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.kustomization("apps", nil)
			w.crowd(app, room)
			a, b := w.ClosedGate("a", all()), w.ClosedGate("b", all())
			for range 2 {
				w.reconcile(a)
				w.reconcile(b)
			}
			version := w.reload(app).GetResourceVersion()
			w.reconcile(a)
			w.reconcile(b)
			if w.reload(app).GetResourceVersion() != version {
				t.Error("written again although nothing changed")
			}
			w.open(a, start)
			w.reconcile(a)
			w.reconcile(b)
			w.reconcile(a)
			if l := w.look(app); l.suspend != true || strings.Contains(l.approved, key(a)) || strings.Contains(l.heldBy, key(a)) || a.Status.Targets.Held > 0 {
				t.Errorf("gate a is open: %+v, %+v", l, a.Status.Targets)
			}
			w.Must(cluster.Client.Delete(w.Context(), a))
			w.reconcile(a)
			if !w.gone(a) || !w.suspended(app) {
				t.Error("gate a is not gone, or the target is free")
			}
			w.open(b, start)
			w.reconcile(b)
			if w.suspended(app) {
				t.Error("not released")
			}
		})
	}
}

// Each shard of the controller has the Gates of its own in its cache.
func TestAShardDoesNotReleaseWhatAnotherShardHolds(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.reconcile(g)
	w.flux(app, `{"metadata":{"annotations":{"`+v1alpha1.HeldByAnnotation+`":null}}}`)
	w.Client = emptyGates{w.Client}
	w.missing(w.Namespace, "")
	if !w.suspended(app) {
		t.Error("released")
	}
}

// emptyGates is a client whose cache has no Gates.
type emptyGates struct{ client.Client }

func (emptyGates) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
