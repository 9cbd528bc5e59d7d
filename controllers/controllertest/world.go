// Package controllertest is the environment of the tests of the controllers: a namespace on a real API server, the reconcilers on that, and
// a clock that the test moves. Only tests import it.
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

// Start is when the fake clock of each test begins: a Monday.
var Start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// World is a namespace of its own and controllers that are called directly,
// under a clock that only the test moves.
type World struct {
	*harness.World
	*controllers.Gating
	FakeClock *clocktesting.FakePassiveClock
	Events    *Recorder
	Writes    *Writes
	Registry  *prometheus.Registry
	// State is what the controllers remember, and woken what is to be looked at.
	State    *controllers.State
	Enqueued *Enqueued
	// failed is what is to be tried again.
	failed Pending
	// RequeueAfter is when one of the targets is to be looked at again, after the last time that all were.
	RequeueAfter map[target.Key]time.Duration
	// Unstamped is that of an API server without config/policies.
	Unstamped bool
	// AllNamespaces are all of this world.
	AllNamespaces []string
}

func New(t *testing.T) *World {
	t.Helper()
	w := &World{
		World: harness.NewWorld(t, controlPlane), FakeClock: clocktesting.NewFakePassiveClock(Start),
		Events: &Recorder{}, Writes: &Writes{}, Registry: prometheus.NewRegistry(), Enqueued: &Enqueued{},
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

// ResetState forgets what the controllers remember.
func (w *World) ResetState() {
	w.State = controllers.NewState()
	w.State.Summary.Changed = func(g summary.Gate, _ bool) { w.Enqueued.Gate(g.NamespacedName) }
}

// Reconcilers returns the controllers as they are made of this world.
func (w *World) Reconcilers() *controllers.Reconcilers { return w.NewReconcilers(w.State, w.Enqueued) }

// NewNamespace creates another namespace of this world and returns its name.
func (w *World) NewNamespace() string {
	w.Helper()
	w.AllNamespaces = append(w.AllNamespaces, w.World.NewNamespace())
	return w.AllNamespaces[len(w.AllNamespaces)-1]
}

// In moves the clock to a time after start.
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

// Try reconciles a Gate once, at the time of the fake clock, and reads it again
// if it is still there. The error is also that of targets, which are tried again.
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

// TryNamed reconciles a Gate that may not exist, all that it has to do with, and the Gate again, until
// nothing is left to do. It returns when one of these is to be looked at again. The error is the first of the Gate, or of its
// targets if there is no such Gate.
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
			w.Errorf("%+v beside an error, with which nobody looks at it: %v", result, err)
		}
		if w.GetGate(key) == nil {
			w.enqueueNamed(key)
		}
		others = w.ReconcileEnqueued()
		if w.Writes.Count() == before && !w.Enqueued.Has(key) {
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

// MaxRounds is how often all is looked at that is woken by what was written before.
const MaxRounds = 12

// GetGate reads a Gate, nil if there is none.
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

// enqueueAll has the status of a Gate wait until all of its targets were looked at once.
func (w *World) enqueueAll(key client.ObjectKey) {
	w.Helper()
	clear(w.RequeueAfter)
	if again := w.failed; len(again.TargetKeys)+len(again.LockNamespaces) > 0 { // their queues have tried them again by now
		w.failed = Pending{}
		w.Enqueued.Locks(again.LockNamespaces...)
		w.Enqueued.Targets(queue.Resync, again.TargetKeys...)
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

// enqueueNamed wakes all that has the name of a Gate which does not exist.
func (w *World) enqueueNamed(key client.ObjectKey) {
	w.Helper()
	named, err := w.Reconcilers().Gates.Selector.Named(w.Context(), key.String())
	w.Must(err)
	w.Enqueued.Targets(queue.Resync, named...)
	namespaces, err := w.Locks.Naming(w.Context(), key.String())
	w.Must(err)
	w.Enqueued.Locks(namespaces...)
}

// ReconcileGate reconciles a Gate alone, and wakes who has to know if it has changed.
func (w *World) ReconcileGate(key client.ObjectKey) (ctrl.Result, error) {
	w.Helper()
	before, l := w.GetGate(key), w.Reconcilers()
	result, err := l.Gates.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	if after := w.GetGate(key); before != nil || after != nil {
		w.Must(l.Handlers.Gate(w.Context(), before, after))
	}
	return result, err
}

// ReconcileEnqueued looks once at the GateLocks and the targets that were woken.
func (w *World) ReconcileEnqueued() error {
	w.Helper()
	l, take := w.Reconcilers(), w.Enqueued.Take()
	var errs []error
	for _, namespace := range take.LockNamespaces {
		_, err := l.Locks.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
		if errs = append(errs, err); err != nil {
			w.failed.LockNamespaces = append(w.failed.LockNamespaces, namespace)
		}
	}
	for _, key := range take.TargetKeys {
		written := w.Writes.Count()
		result, err := reconcileTarget(w.Context(), l, key)
		w.RequeueAfter[key] = result.RequeueAfter
		switch errs = append(errs, err); {
		case err != nil:
			w.failed.TargetKeys = append(w.failed.TargetKeys, key)
		case w.Writes.Count() > written:
			w.Enqueued.Targets(queue.Report, key) // its event
		}
	}
	return errors.Join(errs...)
}

// reconcileTarget reconciles a target with the reconciler of its kind.
func reconcileTarget(ctx context.Context, l *controllers.Reconcilers, key target.Key) (ctrl.Result, error) {
	if target.Pins(key.GroupKind) {
		return l.GatedSources.Reconcile(ctx, ctrl.Request{NamespacedName: key.NamespacedName})
	}
	return l.Targets.Reconcile(ctx, key)
}

// Reconcile is try that must not fail.
func (w *World) Reconcile(g *v1alpha1.Gate) ctrl.Result {
	w.Helper()
	result, err := w.Try(g)
	w.Must(err)
	return result
}

// Open asks a Gate to open at a time.
func (w *World) Open(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// Close asks a Gate to close at a time.
func (w *World) Close(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// Key is how a Gate is named in the annotation of its targets.
func Key(g *v1alpha1.Gate) string { return g.Namespace + "/" + g.Name }

// Named refers to one Kustomization.
func Named(name string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: "Kustomization", Name: name}
}

// All refers to all Kustomizations, or to those with labels given as key, value.
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
	w.Enqueued.Has(key)
	w.Reconcilers().Handlers.Target(w.Context(), before, after, false)
	w.Must(w.ReconcileEnqueued())
	if !w.Enqueued.Has(key) {
		w.Errorf("gate %s is not enqueued", key)
	}
}
