package controllers

import (
	"context"
	"errors"
	"reflect"
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
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// start is when the fake clock of each test begins: a Monday.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// world is a namespace of its own and controllers that are called directly,
// under a clock that only the test moves.
type world struct {
	*harness.World
	*Gating
	clock    *clocktesting.FakePassiveClock
	events   *recorder
	writes   *writes
	registry *prometheus.Registry
	// memory is what the controllers remember, and woken what is to be looked at.
	memory *state
	woken  *woken
	// failed is what is to be tried again.
	failed wokenNow
	// soonest is when one of the targets is to be looked at again, after the last time that all were.
	soonest map[target.Key]time.Duration
	// unstamped is that of an API server without config/policies.
	unstamped bool
	// namespaces are all of this world.
	namespaces []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		World: harness.NewWorld(t, cluster), clock: clocktesting.NewFakePassiveClock(start),
		events: &recorder{}, writes: &writes{}, registry: prometheus.NewRegistry(), woken: &woken{},
		soonest: map[target.Key]time.Duration{},
	}
	w.namespaces = []string{w.Namespace}
	w.forget()
	w.Gating = &Gating{
		Client: w.writes.client(cluster.Client), EventRecorder: w.events, APIReader: cluster.Client, Clock: w.clock,
		Metrics: runtimectrl.Metrics{}, GateMetrics: events.MustMakeMetrics(w.registry),
		Backoff: runtimectrl.GetDefaultRateLimiter(), Stamped: func(context.Context) (bool, error) { return !w.unstamped, nil }, StampsSources: func(context.Context) (bool, error) { return !w.unstamped, nil },
	}
	w.Targets = shared.of(w)
	w.Locks = &liveLocks{w: w}
	return w
}

// forget forgets what the controllers remember.
func (w *world) forget() {
	w.memory = newState()
	w.memory.summary.Changed = func(g summary.Gate, _ bool) { w.woken.Gate(g.NamespacedName) }
}

// on returns the controllers as they are made of this world.
func (w *world) on() *reconcilers { return w.newReconcilers(w.memory, w.woken) }

// NewNamespace creates another namespace of this world and returns its name.
func (w *world) NewNamespace() string {
	w.Helper()
	w.namespaces = append(w.namespaces, w.World.NewNamespace())
	return w.namespaces[len(w.namespaces)-1]
}

// in moves the clock to a time after start.
func (w *world) in(d time.Duration) time.Time {
	w.clock.SetTime(start.Add(d))
	return start.Add(d)
}

// gateIn creates a Gate in a namespace.
func (w *world) gateIn(namespace, name string, spec v1alpha1.GateSpec) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}
	w.Create(g)
	return g
}

// try reconciles a Gate once, at the time of the fake clock, and reads it again
// if it is still there. The error is also that of targets, which are tried again.
func (w *world) try(g *v1alpha1.Gate) (ctrl.Result, error) {
	w.Helper()
	result, err := w.tryNamed(g.Namespace, g.Name)
	if err := w.TryRead(g); !apierrors.IsNotFound(err) {
		w.Must(err)
	}
	if c := conditions.Get(g, meta.ReconcilingCondition); err == nil && c != nil && c.Reason == meta.ProgressingWithRetryReason {
		err = errors.New(c.Message)
	}
	return result, err
}

// tryNamed reconciles a Gate that may not exist, all that it has to do with, and the Gate again, until
// nothing is left to do. It returns when one of these is to be looked at again. The error is the first of the Gate, or of its
// targets if there is no such Gate.
func (w *world) tryNamed(namespace, name string) (ctrl.Result, error) {
	w.Helper()
	key := client.ObjectKey{Namespace: namespace, Name: name}
	w.expectAll(key)
	var result ctrl.Result
	var err, others, first error
	for range maxRounds {
		before := w.writes.count()
		if key.Name != "" {
			result, err = w.decideOn(key)
		}
		if first == nil {
			first = err
		}
		if err != nil && !result.IsZero() {
			w.Errorf("%+v beside an error, with which nobody looks at it: %v", result, err)
		}
		if w.read(key) == nil {
			w.wakeNamed(key)
		}
		others = w.lookAtWoken()
		if w.writes.count() == before && !w.woken.has(key) {
			break
		}
	}
	if err = first; w.read(key) == nil {
		err = errors.Join(err, others)
	}
	for _, again := range w.soonest {
		if again > 0 && err == nil && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
			result.RequeueAfter = again
		}
	}
	return result, err
}

// maxRounds is how often all is looked at that is woken by what was written before.
const maxRounds = 12

// read reads a Gate, nil if there is none.
func (w *world) read(key client.ObjectKey) *v1alpha1.Gate {
	w.Helper()
	if key.Name == "" {
		return nil
	}
	g := &v1alpha1.Gate{}
	if err := cluster.Client.Get(w.Context(), key, g); err != nil {
		w.Must(client.IgnoreNotFound(err))
		return nil
	}
	return g
}

// expectAll has the status of a Gate wait until all of its targets were looked at once.
func (w *world) expectAll(key client.ObjectKey) {
	w.Helper()
	clear(w.soonest)
	if again := w.failed; len(again.targets)+len(again.locks) > 0 { // their queues have tried them again by now
		w.failed = wokenNow{}
		w.woken.Locks(again.locks...)
		w.woken.Targets(queue.Resync, again.targets...)
		_ = w.lookAtWoken()
	}
	if g := w.read(key); g != nil {
		keys, err := w.on().gates.Selector.Governed(w.Context(), g)
		w.Must(err)
		if w.memory.gates.NextResync(g).IsZero() {
			w.memory.summary.Expect(keys...)
		}
		w.Must(w.on().handlers.EnqueueAll(w.Context(), g))
	}
}

// wakeNamed wakes all that has the name of a Gate which does not exist.
func (w *world) wakeNamed(key client.ObjectKey) {
	w.Helper()
	named, err := w.on().gates.Selector.Named(w.Context(), key.String())
	w.Must(err)
	w.woken.Targets(queue.Resync, named...)
	namespaces, err := w.Locks.Naming(w.Context(), key.String())
	w.Must(err)
	w.woken.Locks(namespaces...)
}

// decideOn reconciles a Gate alone, and wakes who has to know if it has changed.
func (w *world) decideOn(key client.ObjectKey) (ctrl.Result, error) {
	w.Helper()
	before, l := w.read(key), w.on()
	result, err := l.gates.Reconcile(w.Context(), ctrl.Request{NamespacedName: key})
	if after := w.read(key); before != nil || after != nil {
		w.Must(l.handlers.Gate(w.Context(), before, after))
	}
	return result, err
}

// lookAtWoken looks once at the GateLocks and the targets that were woken.
func (w *world) lookAtWoken() error {
	w.Helper()
	l, take := w.on(), w.woken.take()
	var errs []error
	for _, namespace := range take.locks {
		_, err := l.locks.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: namespace}})
		if errs = append(errs, err); err != nil {
			w.failed.locks = append(w.failed.locks, namespace)
		}
	}
	for _, key := range take.targets {
		written := w.writes.count()
		result, err := l.reconcileTarget(w.Context(), key)
		w.soonest[key] = result.RequeueAfter
		switch errs = append(errs, err); {
		case err != nil:
			w.failed.targets = append(w.failed.targets, key)
		case w.writes.count() > written:
			w.woken.Targets(queue.Report, key) // its event
		}
	}
	return errors.Join(errs...)
}

// reconcileTarget reconciles a target with the reconciler of its kind, as Queues does.
func (l *reconcilers) reconcileTarget(ctx context.Context, key target.Key) (ctrl.Result, error) {
	if target.Pins(key.GroupKind) {
		return l.gatedSources.Reconcile(ctx, ctrl.Request{NamespacedName: key.NamespacedName})
	}
	return l.targets.Reconcile(ctx, key)
}

// reconcile is try that must not fail.
func (w *world) reconcile(g *v1alpha1.Gate) ctrl.Result {
	w.Helper()
	result, err := w.try(g)
	w.Must(err)
	return result
}

// open asks a Gate to open at a time.
func (w *world) open(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// close asks a Gate to close at a time.
func (w *world) close(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// key is how a Gate is named in the annotation of its targets.
func key(g *v1alpha1.Gate) string { return g.Namespace + "/" + g.Name }

// named refers to one Kustomization.
func named(name string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: "Kustomization", Name: name}
}

// all refers to all Kustomizations, or to those with labels given as key, value.
func all(labels ...string) v1alpha1.TargetReference {
	ref := named(v1alpha1.AnyName)
	for i := 0; i < len(labels); i += 2 {
		ref.MatchLabels = map[string]string{labels[i]: labels[i+1]}
	}
	return ref
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// remove deletes a target and handles the event, which must enqueue a Gate.
func (w *world) remove(obj *target.Object, g *v1alpha1.Gate) {
	w.Helper()
	w.reload(obj)
	w.Must(cluster.Client.Delete(w.Context(), obj))
	w.happens(&obj.Unstructured, nil, g)
}

// relabel changes the labels of a target and handles the event, which must enqueue a Gate.
func (w *world) relabel(obj *target.Object, labels map[string]string, g *v1alpha1.Gate) {
	w.Helper()
	before := w.reload(obj).DeepCopy()
	w.Edit(obj, func() { obj.SetLabels(labels) })
	w.happens(before, &obj.Unstructured, g)
}

// happens handles the event of a target, which must enqueue a Gate.
func (w *world) happens(before, after *unstructured.Unstructured, g *v1alpha1.Gate) {
	w.Helper()
	key := client.ObjectKeyFromObject(g)
	w.woken.has(key)
	w.on().handlers.Target(w.Context(), before, after, false)
	w.Must(w.lookAtWoken())
	if !w.woken.has(key) {
		w.Errorf("gate %s is not enqueued", key)
	}
}
