package enqueue

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/pkg/runtime/conditions"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// Handlers handles the events of Gates, targets, GateLocks and namespaces, and enqueues the objects that depend on them.
type Handlers struct {
	// Clock is read once for each event.
	Clock clock.PassiveClock
	// Gates reads Gates from the cache, which has the indexes view.TargetField and view.DependencyField.
	Gates client.Reader
	// Selector finds the targets of a Gate.
	Selector *view.Selector
	// Locks reads GateLocks.
	Locks view.LockReader
	// Summary records that targets are pending for a Gate.
	Summary *summary.Summary
	// Rollouts stores the targets that are released in waves. They are enqueued when their readiness changes.
	Rollouts *waves.Rollouts
	// Queues enqueues objects.
	Queues Enqueuer

	Versions *ownwrites.Versions[target.Key]
}

// ForGates handles the events of Gates.
func (e *Handlers) ForGates() handler.EventHandler {
	type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]
	typed := func(obj client.Object) *v1alpha1.Gate {
		g, _ := obj.(*v1alpha1.Gate)
		return g
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, ev event.CreateEvent, _ requests) {
			if g := typed(ev.Object); ledger.CloseRequested(g) {
				e.Queues.PrioritizeGate(client.ObjectKeyFromObject(g), queue.Hold)
			}
			view.LogReadError(e.Gate(ctx, nil, typed(ev.Object)))
		},
		UpdateFunc: func(ctx context.Context, ev event.UpdateEvent, _ requests) {
			if closes(ev.ObjectOld, ev.ObjectNew) {
				e.Queues.PrioritizeGate(client.ObjectKeyFromObject(ev.ObjectNew), queue.Hold)
			}
			view.LogReadError(e.Gate(ctx, typed(ev.ObjectOld), typed(ev.ObjectNew)))
		},
		DeleteFunc: func(ctx context.Context, ev event.DeleteEvent, _ requests) {
			view.LogReadError(e.Gate(ctx, typed(ev.Object), nil))
		},
		GenericFunc: nil,
	}
}

// closes returns whether an update adds a request to close.
func closes(before, after client.Object) bool {
	old, new := before.GetAnnotations(), after.GetAnnotations()
	return slices.ContainsFunc([]string{
		v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseRequestedByAnnotation, v1alpha1.CloseReceivedAnnotation, v1alpha1.UnhandledAnnotation,
	}, func(name string) bool { return new[name] != "" && old[name] != new[name] })
}

// Gate enqueues the targets and GateLocks that depend on a changed Gate. before is nil for a new Gate, after for a deleted one.
func (e *Handlers) Gate(ctx context.Context, before, after *v1alpha1.Gate) error {
	if before != nil && after != nil && !gate.AffectsTargets(before, after) {
		return nil
	}
	class, now := queue.Release, e.Clock.Now()
	all, namespaces := view.KeySet{}, view.UniqueKeys[string]{}
	for _, g := range []*v1alpha1.Gate{before, after} {
		if g == nil {
			continue
		}
		governed, err := e.Selector.Governed(ctx, g)
		if err != nil {
			return err
		}
		if g == after {
			if before == nil && conditions.Has(after, v1alpha1.OpenedCondition) { // after a restart
				class = queue.Resync
			} else {
				e.Summary.MarkPending(summary.KeyFor(g), governed)
			}
			if (verdict.Governing("", g, now).Effect == verdict.Closed || gate.OverlaysClose(g, now)) && class != queue.Resync {
				class = queue.Hold
			}
		}
		all.AddKeys(governed...)
		namespaces.AddKeys(view.NamespacesFor(g)...)
	}
	g := after
	if g == nil {
		g = before
	}
	return e.enqueue(ctx, class, g, all, namespaces)
}

// enqueue enqueues the given targets and the GateLocks of the given namespaces, and the targets and GateLocks that name the Gate.
func (e *Handlers) enqueue(ctx context.Context, class queue.Class, g *v1alpha1.Gate, keys view.KeySet, namespaces view.UniqueKeys[string]) error {
	name := client.ObjectKeyFromObject(g)
	named, err := e.Selector.Named(ctx, name.String())
	if err != nil {
		return err
	}
	for _, key := range named {
		namespaces.AddKeys(key.Namespace)
	}
	keys.AddKeys(named...)
	e.Queues.Targets(class, keys.Keys...)
	locked, err := e.Locks.Naming(ctx, name.String())
	namespaces.AddKeys(locked...)
	e.Queues.Locks(namespaces.Keys...)
	if err != nil {
		return nil //nolint:nilerr // the lock controller reports it
	}
	return nil
}

// EnqueueAll enqueues the targets and GateLocks of an unchanged Gate.
func (e *Handlers) EnqueueAll(ctx context.Context, g *v1alpha1.Gate) error {
	governed, err := e.Selector.Governed(ctx, g)
	if err != nil {
		return err
	}
	if e.Summary.Sums(summary.KeyFor(g)).Awaits {
		e.Summary.MarkPending(summary.KeyFor(g), governed)
	}
	all, namespaces := view.KeySet{}, view.UniqueKeys[string]{}
	all.AddKeys(governed...)
	namespaces.AddKeys(view.NamespacesFor(g)...)
	return e.enqueue(ctx, queue.Resync, g, all, namespaces)
}

// ForTargets handles the events of targets.
func (e *Handlers) ForTargets(ctx context.Context) toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				e.Target(ctx, nil, u, isInInitialList)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok1 := before.(*unstructured.Unstructured)
			a, ok2 := after.(*unstructured.Unstructured)
			switch {
			case !ok1 || !ok2:
			case matters(b, a):
				e.Target(ctx, b, a, false)
			default:
				ReadinessChanged(e.Rollouts, e.Queues, b, a)
				e.enqueueDependents(ctx, a)
			}
		},
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if u, ok := obj.(*unstructured.Unstructured); ok {
				e.Target(ctx, u, nil, false)
			}
		},
	}
}

// Target enqueues a target that was added, changed or deleted, and the objects that depend on it.
func (e *Handlers) Target(ctx context.Context, before, after *unstructured.Unstructured, isInInitialList bool) {
	obj := after
	if obj == nil {
		obj = before
	}
	key := target.KeyOf(&target.Object{Unstructured: *obj})
	switch {
	case isInInitialList:
		e.Summary.Expect(key)
		class := queue.Resync
		if changeClass(obj, obj) == queue.Hold {
			class = queue.Hold
		}
		e.Queues.Targets(class, key)
	case e.isOwnWrite(key, before, after):
		e.Queues.Targets(queue.Report, key)
	default:
		e.Queues.Targets(changeClass(before, after), key)
	}
	if !slices.Equal(namesIn(before), namesIn(after)) {
		e.Queues.Locks(obj.GetNamespace())
	}
	if before != nil && after != nil && !apiequality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) {
		e.enqueueRelabeled(ctx, after)
	}
	e.enqueueDependents(ctx, obj)
}

// isOwnWrite returns whether this process made the last change of a target. While a write is in progress, a change to the Gates that hold
// the target counts as its own, because the event may precede the response. Otherwise, the conditions would be written before other
// targets are released.
func (e *Handlers) isOwnWrite(key target.Key, before, after *unstructured.Unstructured) bool {
	if after == nil {
		return false
	}
	heldBy := func(obj *unstructured.Unstructured) string { return obj.GetAnnotations()[v1alpha1.HeldByAnnotation] }
	return e.Versions.IsOwn(key, after.GetResourceVersion()) || before != nil && heldBy(before) != heldBy(after) && e.Versions.IsWriting(key)
}

// changeClass returns the class of a target that another client has changed. A change that circumvents the hold is urgent.
func changeClass(before, after *unstructured.Unstructured) queue.Class {
	if before != nil && after != nil {
		if _, passes := verdict.PassMoves(&target.Object{Unstructured: *before}, &target.Object{Unstructured: *after}); passes {
			return queue.Hold
		}
	}
	return queue.Change
}

// enqueueRelabeled enqueues the Gates that report a reference without matches, because the reference may match an object with new
// labels.
func (e *Handlers) enqueueRelabeled(ctx context.Context, obj *unstructured.Unstructured) {
	for _, key := range view.IndexKeys(obj) {
		for _, g := range e.indexed(ctx, view.TargetField, key) {
			if view.HasEmptyReference(g) {
				e.Queues.Gate(client.ObjectKeyFromObject(g))
			}
		}
	}
}

func namesIn(obj *unstructured.Unstructured) []string {
	if obj == nil {
		return nil
	}
	return verdict.NamedBy(obj)
}

// enqueueDependents enqueues the Gates that depend on an object, and the GatedSources that follow or pin it.
func (e *Handlers) enqueueDependents(ctx context.Context, obj *unstructured.Unstructured) {
	e.Queues.Targets(queue.Change, view.Followers(ctx, e.Selector.Targets, obj)...)
	for _, g := range e.indexed(ctx, view.DependencyField, view.IndexKey(obj, obj.GetName())) {
		e.Queues.Gate(client.ObjectKeyFromObject(g))
	}
}

// indexed returns the Gates that an index lists for a key.
func (e *Handlers) indexed(ctx context.Context, field, key string) []*v1alpha1.Gate {
	gates, err := view.ListGates(ctx, e.Gates, client.MatchingFields{field: key})
	view.LogReadError(err)
	return gates
}

// ForLocks handles the events of GateLocks. It enqueues targets that may have waited for a GateLock, and GateLocks that another client
// has changed.
func (e *Handlers) ForLocks(ctx context.Context) toolscache.ResourceEventHandler {
	changed := func(obj any) {
		if tombstone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			obj = tombstone.Obj
		}
		if l, ok := obj.(*lockv1alpha1.GateLock); ok {
			e.enqueueLock(ctx, view.LockedNamespace(l))
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc: changed, DeleteFunc: changed,
		UpdateFunc: func(_, after any) { changed(after) },
	}
}

// enqueueLock enqueues the GateLock of a namespace, or the GateLock of all namespaces, and the held targets there.
func (e *Handlers) enqueueLock(ctx context.Context, namespace string) {
	e.Queues.Locks(namespace)
	if namespace == v1alpha1.AnyName {
		namespace = metav1.NamespaceAll
	}
	for _, adapter := range target.All() {
		if !target.Suspends(adapter) {
			continue
		}
		found, err := e.Selector.Targets.Select(ctx, adapter, namespace, &v1alpha1.TargetReference{Name: v1alpha1.AnyName})
		view.LogReadError(view.IgnoreUnread(err))
		for _, t := range found {
			if len(verdict.HeldBy(&t.Unstructured)) > 0 || view.HeldWithoutGate(&t.Unstructured) {
				e.Queues.Targets(queue.Release, target.KeyOf(t))
			}
		}
	}
}

// matters returns whether an update of a target can affect a Gate. Most updates change only the status reported by Flux.
func matters(before, after *unstructured.Unstructured) bool {
	adapter := target.Of(after)
	old, latest := &target.Object{Unstructured: *before}, &target.Object{Unstructured: *after}
	passes, _ := verdict.PassMoves(old, latest)
	return passes || adapter == nil || before.GetUID() != after.GetUID() || adapter.Observe(old, verdict.Us) != adapter.Observe(latest, verdict.Us) || adapter.Differs(old, latest) ||
		target.IsInitial(old) != target.IsInitial(latest) ||
		old.GetAnnotations()[v1alpha1.HeldByAnnotation] != latest.GetAnnotations()[v1alpha1.HeldByAnnotation] ||
		old.GetAnnotations()[v1alpha1.ActivateIntoAnnotation] != latest.GetAnnotations()[v1alpha1.ActivateIntoAnnotation] ||
		old.GetAnnotations()[v1alpha1.GatesAnnotation] != latest.GetAnnotations()[v1alpha1.GatesAnnotation] ||
		(old.GetDeletionTimestamp() == nil) != (latest.GetDeletionTimestamp() == nil) ||
		!apiequality.Semantic.DeepEqual(old.GetLabels(), latest.GetLabels()) ||
		!apiequality.Semantic.DeepEqual(verdict.ApprovedOf(old), verdict.ApprovedOf(latest))
}

// ReadinessChanged enqueues a target that is released in waves if its readiness, or the message about its readiness, has changed.
func ReadinessChanged(rollouts *waves.Rollouts, queues Enqueuer, before, after *unstructured.Unstructured) {
	if rollouts.IsEmpty() {
		return
	}
	obj := &target.Object{Unstructured: *after}
	if key := target.KeyOf(obj); rollouts.Has(key) {
		was, oldMessage := target.ReadinessOf(&target.Object{Unstructured: *before})
		if is, message := target.ReadinessOf(obj); is != was || message != oldMessage {
			queues.Targets(queue.Report, key)
		}
	}
}
