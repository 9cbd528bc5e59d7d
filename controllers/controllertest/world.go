// Package controllertest is the environment of the tests of the controllers: a namespace on a real API server, its reconcilers, and a fake
// clock. Only tests import it.
package controllertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// Start is the initial time of the fake clock of each test, a Monday.
var Start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// World is a namespace with reconcilers that the test calls, and a fake clock.
type World struct {
	*harness.World
	*controllers.Gating
	FakeClock *clocktesting.FakePassiveClock
	Events    *Recorder
	Writes    *Writes
	Registry  *prometheus.Registry
	// State is the state of the controllers in memory.
	State  *controllers.State
	Queues *Queues
	// retries enqueue the failed items again.
	retries []func()
	// RequeueAfter has the requested delays of targets.
	RequeueAfter map[target.Key]time.Duration
	// Unstamped is true if config/policies are not installed.
	Unstamped bool
	// AllNamespaces are the namespaces of this world.
	AllNamespaces []string
}

// New returns a world.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{
		World: harness.NewWorld(t, controlPlane), FakeClock: clocktesting.NewFakePassiveClock(Start),
		Events: &Recorder{}, Writes: &Writes{}, Registry: prometheus.NewRegistry(), Queues: NewQueues(t),
		RequeueAfter: map[target.Key]time.Duration{},
	}
	w.AllNamespaces = []string{w.Namespace}
	w.ResetState()
	w.Gating = &controllers.Gating{
		Client: w.Writes.Client(controlPlane.Client), EventRecorder: w.Events, APIReader: controlPlane.Client, Clock: w.FakeClock,
		Metrics: runtimectrl.Metrics{}, GateMetrics: events.MustMakeMetrics(w.Registry),
		Backoff: runtimectrl.GetDefaultRateLimiter(), Stamped: func(context.Context) (bool, error) { return !w.Unstamped, nil }, StampsSources: func(context.Context) (bool, error) { return !w.Unstamped, nil },
	}
	w.Targets = sharedCache.of(w)
	w.Locks = &LiveLocks{World: w}
	return w
}

// ResetState replaces the state in memory, as a restart does.
func (w *World) ResetState() {
	w.State = controllers.NewState()
	w.State.Summary.Changed = func(g summary.Gate, _ bool) { w.Queues.Gate(g.NamespacedName) }
}

// Reconcilers returns reconcilers with the current fields of the world.
func (w *World) Reconcilers() *controllers.Reconcilers { return w.NewReconcilers(w.State, w.Queues) }

// NewNamespace creates another namespace of this world and returns its name.
func (w *World) NewNamespace() string {
	w.Helper()
	w.AllNamespaces = append(w.AllNamespaces, w.World.NewNamespace())
	return w.AllNamespaces[len(w.AllNamespaces)-1]
}

// In sets the clock to a time after Start.
func (w *World) In(d time.Duration) time.Time {
	w.FakeClock.SetTime(Start.Add(d))
	return Start.Add(d)
}

// GateIn creates a Gate in a namespace.
func (w *World) GateIn(namespace, name string, spec v1alpha1.GateSpec) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}
	w.Create(g)
	return g
}

// Try reconciles a Gate, its targets and its GateLocks. Then it reads the Gate, if it still exists. It returns an error if one of them has
// failed. The next call retries it.
func (w *World) Try(g *v1alpha1.Gate) (ctrl.Result, error) {
	w.Helper()
	result, err := w.TryNamed(g.Namespace, g.Name)
	if err := w.TryRead(g); !apierrors.IsNotFound(err) {
		w.Must(err)
	}
	if c := conditions.Get(g, meta.ReconcilingCondition); err == nil && c != nil && c.Reason == meta.ProgressingWithRetryReason {
		err = errors.New(c.Message)
	}
	return result, err
}

// TryNamed is like Try for a Gate that may not exist. It reconciles until the queues are empty. The result has the delay before the
// next reconciliation. The error is the first one of the Gate, or of the targets if the Gate does not exist.
func (w *World) TryNamed(namespace, name string) (ctrl.Result, error) {
	w.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	w.enqueueAll(key)
	var result ctrl.Result
	var err, others, first error
	for range MaxRounds {
		before := w.Writes.Count()
		if key.Name != "" {
			result, err = w.ReconcileGate(key)
		}
		if first == nil {
			first = err
		}
		if err != nil && !result.IsZero() {
			w.Errorf("%+v is ignored, because there is an error: %v", result, err)
		}
		if w.GetGate(key) == nil {
			w.enqueueNamed(key)
		}
		others = w.ReconcileEnqueued()
		if enqueued := w.Queues.TakeGate(key); w.Writes.Count() == before && !enqueued && w.Queues.isEmpty() {
			break
		}
	}
	if err = first; w.GetGate(key) == nil {
		err = errors.Join(err, others)
	}
	for _, again := range w.RequeueAfter {
		if again > 0 && err == nil && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	return result, err
}

// MaxRounds bounds how many times the queues are processed.
const MaxRounds = 12

// GetGate reads a Gate, nil if it does not exist.
func (w *World) GetGate(key client.ObjectKey) *v1alpha1.Gate {
	w.Helper()
	if key.Name == "" {
		return nil
	}
	g := &v1alpha1.Gate{}
	if err := controlPlane.Client.Get(w.Context(), key, g); err != nil {
		w.Must(client.IgnoreNotFound(err))
		return nil
	}
	return g
}

// enqueueAll enqueues the failed items, and the targets and GateLocks of a Gate. For a new Gate, the summary awaits the targets.
func (w *World) enqueueAll(key client.ObjectKey) {
	w.Helper()
	clear(w.RequeueAfter)
	if retries := w.retries; len(retries) > 0 {
		w.retries = nil
		for _, enqueue := range retries {
			enqueue()
		}
		_ = w.ReconcileEnqueued()
	}
	if g := w.GetGate(key); g != nil {
		keys, err := w.Reconcilers().Gates.Selector.Governed(w.Context(), g)
		w.Must(err)
		if w.State.Gates.NextResync(g).IsZero() {
			w.State.Summary.Expect(keys...)
		}
		w.Must(w.Reconcilers().Handlers.EnqueueAll(w.Context(), g))
	}
}

// enqueueNamed enqueues the targets and GateLocks that have the name of a Gate that does not exist.
func (w *World) enqueueNamed(key client.ObjectKey) {
	w.Helper()
	named, err := w.Reconcilers().Gates.Selector.Named(w.Context(), key.String())
	w.Must(err)
	w.Queues.Targets(queue.Resync, named...)
	namespaces, err := w.Locks.Naming(w.Context(), key.String())
	w.Must(err)
	w.Queues.Locks(namespaces...)
}

// ReconcileGate reconciles a Gate, and handles the event of its change.
func (w *World) ReconcileGate(key client.ObjectKey) (ctrl.Result, error) {
	w.Helper()
	before, l := w.GetGate(key), w.Reconcilers()
	result, err := l.Gates.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	if after := w.GetGate(key); before != nil || after != nil {
		w.Must(l.Handlers.Gate(w.Context(), before, after))
	}
	return result, err
}

// ReconcileEnqueued reconciles the enqueued GateLocks and targets once. The next call of Try retries those that fail.
func (w *World) ReconcileEnqueued() error {
	w.Helper()
	r := w.Reconcilers()
	var errs []error
	w.Queues.locks(func(namespace string) {
		_, err := r.Locks.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
		if errs = append(errs, err); err != nil {
			w.retries = append(w.retries, func() { w.Queues.Locks(namespace) })
		}
	})
	w.Queues.targets(func(key target.Key) {
		written := w.Writes.Count()
		result, err := reconcileTarget(w.Context(), r, key)
		w.RequeueAfter[key] = result.RequeueAfter
		switch errs = append(errs, err); {
		case err != nil:
			w.retries = append(w.retries, func() { w.Queues.Targets(queue.Resync, key) })
		case w.Writes.Count() > written:
			w.Queues.Targets(queue.Report, key) // the event of the write
		}
	})
	return errors.Join(errs...)
}

// reconcileTarget reconciles a target with the reconciler of its kind.
func reconcileTarget(ctx context.Context, l *controllers.Reconcilers, key target.Key) (ctrl.Result, error) {
	if target.Pins(key.GroupKind) {
		return l.GatedSources.Reconcile(ctx, ctrl.Request{NamespacedName: key.NamespacedName})
	}
	return l.Targets.Reconcile(ctx, key)
}

// Reconcile is like Try, but an error fails the test.
func (w *World) Reconcile(g *v1alpha1.Gate) ctrl.Result {
	w.Helper()
	result, err := w.Try(g)
	w.Must(err)
	return result
}

// Open requests to open a Gate at a time.
func (w *World) Open(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// Close requests to close a Gate at a time.
func (w *World) Close(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// Key returns the name of a Gate as in the annotation of its targets.
func Key(g *v1alpha1.Gate) string { return g.Namespace + "/" + g.Name }

// Named returns a reference to one Kustomization.
func Named(name string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: "Kustomization", Name: name}
}

// All returns a reference to all Kustomizations, or to those with labels given as key and value.
func All(labels ...string) v1alpha1.TargetReference {
	ref := Named(v1alpha1.AnyName)
	for i := 0; i < len(labels); i += 2 {
		ref.MatchLabels = map[string]string{labels[i]: labels[i+1]}
	}
	return ref
}

// Remove deletes a target and handles the event, which must enqueue a Gate.
func (w *World) Remove(obj *target.Object, g *v1alpha1.Gate) {
	w.Helper()
	w.Reload(obj)
	w.Must(controlPlane.Client.Delete(w.Context(), obj))
	w.HandleEvent(&obj.Unstructured, nil, g)
}

// Relabel changes the labels of a target and handles the event, which must enqueue a Gate.
func (w *World) Relabel(obj *target.Object, labels map[string]string, g *v1alpha1.Gate) {
	w.Helper()
	before := w.Reload(obj).DeepCopy()
	w.Edit(obj, func() { obj.SetLabels(labels) })
	w.HandleEvent(before, &obj.Unstructured, g)
}

// HandleEvent handles the event of a target, which must enqueue a Gate.
func (w *World) HandleEvent(before, after *unstructured.Unstructured, g *v1alpha1.Gate) {
	w.Helper()
	key := client.ObjectKeyFromObject(g)
	w.Queues.TakeGate(key)
	w.Reconcilers().Handlers.Target(w.Context(), before, after, false)
	w.Must(w.ReconcileEnqueued())
	if !w.Queues.TakeGate(key) {
		w.Errorf("gate %s is not enqueued", key)
	}
}
