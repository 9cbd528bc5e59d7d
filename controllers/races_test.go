package controllers_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// The controller decides nothing about a suspended Gate, even if the Gate is suspended during the decision. It stays closed.
func TestGateSuspendedDuringDecisionIsUnchanged(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("freeze", named("apps"))
	w.Reconcile(g)
	w.Open(g, start)
	w.Writes.Before = once("patch-status Gate/freeze", func() error {
		fresh := &v1alpha1.Gate{}
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), fresh))
		w.Edit(fresh, func() { fresh.Spec.Suspend = true })
		return nil
	})
	req := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)}
	if _, err := w.Reconcilers().Gates.Reconcile(w.Context(), req); err == nil {
		t.Error("no conflict")
	}
	_, err := w.Reconcilers().Gates.Reconcile(w.Context(), req)
	w.Must(err)
	if w.State.Summary.Sums(summary.KeyFor(g)).Awaits {
		t.Error("its decision is still awaited")
	}
	w.Reconcile(g)
	if w.ExpectHeld(app, g); !g.Spec.Suspend {
		t.Error("it is not suspended")
	}
}

// The event of an edit arrives before the decision about it, and that decision may take longer to reach the cache. Until then, the state of
// the targets does not make the Gate Ready.
func TestTargetIsPendingUntilDecisionIsInCache(t *testing.T) {
	for name, state := range map[string]v1alpha1.State{"that closes": v1alpha1.StateOpened, "that opens": v1alpha1.StateClosed} {
		t.Run("of a Gate "+name, func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.Gate("nights", v1alpha1.GateSpec{Default: state, Targets: []v1alpha1.TargetReference{named("apps")}})
			w.Reconcile(g)
			pending := func(when string) {
				t.Helper()
				w.Queues.Targets(queue.Change, target.KeyOf(app))
				w.Must(w.ReconcileEnqueued())
				if sums := w.State.Summary.Sums(summary.KeyFor(g)); sums.IsSettled() || sums.Total != 1 {
					t.Errorf("%s: %+v", when, sums)
				}
			}
			before := w.GetGate(client.ObjectKeyFromObject(g))
			w.Edit(g, func() {
				g.Spec.Default = map[bool]v1alpha1.State{true: v1alpha1.StateClosed, false: v1alpha1.StateOpened}[state == v1alpha1.StateOpened]
			})
			pending("before it decides")
			_, err := w.ReconcileGate(client.ObjectKeyFromObject(g))
			w.Must(err)
			fresh := w.Client
			w.Client = staleGates{fresh, before}
			pending("in a cache without the decision")
			w.Client = fresh
			w.Reconcile(g)
			if sums := w.State.Summary.Sums(summary.KeyFor(g)); !sums.IsSettled() {
				t.Errorf("in the end: %+v", sums)
			}
		})
	}
}

// The API server has a Gate that is not in the cache, as with shards.
func TestPassIsGrantedByLiveReads(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Reconcile(g)
	freeze := w.ClosedGate("freeze", named("apps"))
	_, err := w.ReconcileGate(client.ObjectKeyFromObject(freeze))
	w.Must(err)
	w.Client = staleGates{w.Client, w.GetGate(client.ObjectKeyFromObject(g))}
	w.askPass(app, w.In(time.Minute))
	w.Queues.Targets(queue.Change, target.KeyOf(app))
	w.Must(w.ReconcileEnqueued())
	if is := w.Suspension(app); is.Suspend != true || w.passOf(app).State != "" {
		t.Errorf("%+v, recorded %+v", is, w.passOf(app))
	}
}

// staleGates is a cache that has an older version of one Gate.
type staleGates struct {
	client.Client
	stale *v1alpha1.Gate
}

// Get implements client.Client.
func (c staleGates) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	g, ok := obj.(*v1alpha1.Gate)
	switch {
	case !ok:
		return c.Client.Get(ctx, key, obj, opts...)
	case key != client.ObjectKeyFromObject(c.stale):
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("gates").GroupResource(), key.Name)
	}
	c.stale.DeepCopyInto(g)
	return nil
}

// List implements client.Client.
func (c staleGates) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if gates, ok := list.(*v1alpha1.GateList); ok {
		gates.Items = []v1alpha1.Gate{*c.stale.DeepCopy()}
		return nil
	}
	return c.Client.List(ctx, list, opts...)
}

// After a watch was cut, the cache is behind for seconds. A random walk found that a Gate that had just opened held a new target.
func TestLastDecisionAppliesWhileCacheIsStale(t *testing.T) {
	for name, tc := range map[string]struct {
		State v1alpha1.State
		ask   func(*world, *v1alpha1.Gate, time.Time)
		held  bool
	}{
		"the Gate has opened": {v1alpha1.StateClosed, (*world).Open, false},
		"the Gate has closed": {v1alpha1.StateOpened, (*world).Close, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: tc.State, Targets: []v1alpha1.TargetReference{named("apps")}})
			_, err := w.Reconcilers().Gates.Reconcile(w.Context(), requestFor(g))
			w.Must(err)
			w.Read(g)
			stale := g.DeepCopy()
			tc.ask(w, g, start)
			_, err = w.Reconcilers().Gates.Reconcile(w.Context(), requestFor(g))
			w.Must(err)
			if w.Read(g); conditions.IsTrue(g, v1alpha1.OpenedCondition) == tc.held {
				t.Fatalf("the Gate has not decided on the request: %+v", g.Status.Conditions)
			}
			r := w.Reconcilers().Targets
			r.Gates.Reader = staleGates{w.Client, stale}
			_, err = r.Reconcile(w.Context(), target.KeyOf(app))
			w.Must(err)
			if tc.held {
				w.ExpectHolder(app, g)
			} else {
				w.ExpectUntouched(app)
			}
		})
	}
}
