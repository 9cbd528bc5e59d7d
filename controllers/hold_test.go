package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

func hours(h float64) time.Duration { return time.Duration(h * float64(time.Hour)) }

func dated(name string, from, until time.Duration) v1alpha1.Period {
	return v1alpha1.Period{Name: name, From: v1alpha1.NewDateTime(start.Add(from)), Until: v1alpha1.NewDateTime(start.Add(until))}
}

func duration(d time.Duration) *v1alpha1.Duration { return &v1alpha1.Duration{Duration: d} }

func TestHoldAndReleaseRestoreObject(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", map[string]string{"tier": "critical"})
	before := w.Reload(app).DeepCopy()
	readable := w.Targets
	w.Targets = notRead{readable}
	w.Queues.Targets(queue.Change, target.KeyOf(app))
	w.Must(w.ReconcileEnqueued())
	if after := w.RequeueAfter[target.KeyOf(app)]; after != view.CacheDelay { // usually, the event of the target enqueues it earlier
		t.Errorf("requeued after %s while its kind is read", after)
	}
	w.Targets = readable
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	w.Open(g, start)
	w.Reconcile(g)
	after := w.Reload(app)
	for _, o := range []interface {
		SetResourceVersion(string)
		SetGeneration(int64)
		SetManagedFields([]metav1.ManagedFieldsEntry)
	}{before, after} {
		o.SetResourceVersion("")
		o.SetGeneration(0)
		o.SetManagedFields(nil)
	}
	delete(before.Object, "status")
	delete(after.Object, "status")
	equal(t, after.Object, before.Object)
	// Only the metadata of responses is read, because decoding thousands of objects takes long.
	equal(t, w.Writes.Take("Kustomization/apps"), []string{
		"apply Kustomization/apps", "patch-status Kustomization/apps", "apply Kustomization/apps", "patch-status Kustomization/apps",
	})
	equal(t, w.Writes.Whole, []string(nil))
}

// The web UI of Flux Operator shows what suspended an object in this annotation. Users and other programs write it, too.
func TestHoldIsVisibleInFluxOperator(t *testing.T) {
	const by = "fluxcd.controlplane.io/suspendedBy"
	w := newWorld(t)
	app, other, full := w.NewKustomization("apps", nil), w.NewKustomization("other", nil), w.NewKustomization("full", nil)
	w.Annotate(other, by, "jane@example.com")
	w.Annotate(full, "big", strings.Repeat("x", 256<<10-100))
	g := w.ClosedGate("production", named("apps"), named("other"), named("full"))
	w.Reconcile(g)
	w.ExpectHeld(full, g)
	shows := func(obj *target.Object, want string) {
		t.Helper()
		if got := w.Reload(obj).GetAnnotations()[by]; got != want {
			t.Errorf("%s: got %q, want %q", obj.GetName(), got, want)
		}
	}
	shows(app, "gate "+key(g))
	shows(other, "jane@example.com")
	shows(full, "")
	second := w.ClosedGate("freeze", named("apps"))
	w.Reconcile(second)
	shows(app, "gates "+key(second)+", "+key(g))
	w.Annotate(app, by, "joe@example.com")
	w.Open(second, start)
	w.Reconcile(second)
	shows(app, "joe@example.com")
	w.Open(g, start)
	w.Reconcile(g)
	if w.Suspension(app).Suspend != nil {
		t.Error("apps is suspended")
	}
	shows(app, "joe@example.com")
	shows(other, "jane@example.com")
}

// notRead is a cache whose objects are being read.
type notRead struct{ view.TargetReader }

// Get implements TargetReader.
func (notRead) Get(context.Context, target.Key) (*target.Object, error) { return nil, view.ErrNotRead }
