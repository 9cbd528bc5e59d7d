// Package enqueue contains the queues of the controllers, and the event handlers that add to them.
package enqueue

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Enqueuer enqueues objects.
type Enqueuer interface {
	// Gate enqueues a Gate.
	Gate(key types.NamespacedName)
	// PrioritizeGate raises the class of a Gate for the next time it is enqueued. The class is Hold if a close is requested or due.
	PrioritizeGate(key types.NamespacedName, class queue.Class)
	// GateSoon enqueues a Gate within a second, to report the progress of its targets.
	GateSoon(key types.NamespacedName)
	// Targets enqueues targets, including GatedSources. Targets of the same class are reconciled in this order.
	Targets(class queue.Class, keys ...target.Key)
	// Prioritize gives a target the urgency of a hold for the next time it is enqueued.
	Prioritize(key target.Key)
	// Locks enqueues the GateLocks of namespaces.
	Locks(namespaces ...string)
}

const (
	// ProgressInterval is the shortest interval between writes of the progress of targets in the status of a Gate.
	ProgressInterval = time.Second
	// ProgressPerSecond bounds the rate of these writes for all Gates together. Otherwise, hundreds of Gates that change at the same time
	// would delay the writes of targets.
	ProgressPerSecond = 20
)

// Queues are the queues of the controllers. Keys added before the controllers start are processed once they have started.
type Queues struct {
	LockQueue        workqueue.TypedRateLimitingInterface[reconcile.Request]
	GateQueue        gateQueue
	TargetQueue      ordered[target.Key]
	GatedSourceQueue ordered[reconcile.Request]
}

// ordered is a queue whose urgent keys come first.
type ordered[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	order *queue.Queue[T]
}

// newOrdered returns a queue with the given order and retry limiter.
func newOrdered[T comparable](name string, order *queue.Queue[T], limiter workqueue.TypedRateLimiter[T]) ordered[T] {
	return ordered[T]{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, Queue: order}),
		}),
	}), order}
}

// addUrgent adds a key with at least the given urgency.
func (q ordered[T]) addUrgent(key T, urgency queue.Priority) {
	q.order.Prioritize(key, urgency)
	q.Add(key)
}

// gateQueue orders Gates. Gates with an event or an edge precede Gates with only a resync, and namespaces take turns.
type gateQueue struct {
	ordered[reconcile.Request]
}

// Add implements workqueue.TypedInterface. AddAfter and AddRateLimited do not call it.
func (q gateQueue) Add(gate reconcile.Request) {
	q.addUrgent(gate, queue.Priority{Class: queue.Change})
}

// NewQueues returns queues with the given retry limiters.
func NewQueues(limiter func() workqueue.TypedRateLimiter[reconcile.Request]) *Queues {
	return &Queues{
		LockQueue: workqueue.NewTypedRateLimitingQueueWithConfig(within{limiter(), failureInterval},
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: "gatelock"}),
		GateQueue: gateQueue{newOrdered("gate", queue.NewFair(func(gate reconcile.Request) string { return gate.Namespace }),
			workqueue.TypedRateLimiter[reconcile.Request](within{limiter(), failureInterval}))},
		TargetQueue:      newOrdered("target", queue.New[target.Key](), workqueue.TypedRateLimiter[target.Key](&mappedLimiter[target.Key]{limiter(), targetRequest})),
		GatedSourceQueue: newOrdered("gatedsource", queue.New[reconcile.Request](), limiter()),
	}
}

// Gate implements Enqueuer.
func (q *Queues) Gate(key types.NamespacedName) {
	q.GateQueue.Add(reconcile.Request{NamespacedName: key})
}

// PrioritizeGate implements Enqueuer.
func (q *Queues) PrioritizeGate(key types.NamespacedName, class queue.Class) {
	q.GateQueue.order.Prioritize(reconcile.Request{NamespacedName: key}, queue.Priority{Class: class})
}

// GateSoon implements Enqueuer. Repeated calls do not postpone the first one.
func (q *Queues) GateSoon(key types.NamespacedName) {
	q.GateQueue.AddAfter(reconcile.Request{NamespacedName: key}, ProgressInterval)
}

// Targets implements Enqueuer.
func (q *Queues) Targets(class queue.Class, keys ...target.Key) {
	for i, key := range keys {
		urgency := queue.Priority{Class: class, Place: i}
		if target.Pins(key.GroupKind) {
			q.GatedSourceQueue.addUrgent(reconcile.Request{NamespacedName: key.NamespacedName}, urgency)
		} else {
			q.TargetQueue.addUrgent(key, urgency)
		}
	}
}

// Prioritize implements Enqueuer.
func (q *Queues) Prioritize(key target.Key) {
	urgency := queue.Priority{Class: queue.Hold}
	if target.Pins(key.GroupKind) {
		q.GatedSourceQueue.order.Prioritize(reconcile.Request{NamespacedName: key.NamespacedName}, urgency)
	} else {
		q.TargetQueue.order.Prioritize(key, urgency)
	}
}

// Locks implements Enqueuer.
func (q *Queues) Locks(namespaces ...string) {
	for _, namespace := range namespaces {
		q.LockQueue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}
}

// failureInterval bounds the delay of a retry, because the next transition may be due sooner, and no event reports that a failure has
// ended.
const failureInterval = time.Minute

// within bounds the delays that a limiter returns.
type within struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	most time.Duration
}

// When implements workqueue.TypedRateLimiter.
func (w within) When(item reconcile.Request) time.Duration {
	return min(w.TypedRateLimiter.When(item), w.most)
}

// mappedLimiter limits the retries of items of type T with a limiter of requests.
type mappedLimiter[T comparable] struct {
	requests  workqueue.TypedRateLimiter[reconcile.Request]
	toRequest func(T) reconcile.Request
}

func targetRequest(key target.Key) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.GroupKind.String() + "/" + key.Name}}
}

// When implements workqueue.TypedRateLimiter.
func (l *mappedLimiter[T]) When(item T) time.Duration { return l.requests.When(l.toRequest(item)) }

// Forget implements workqueue.TypedRateLimiter.
func (l *mappedLimiter[T]) Forget(item T) { l.requests.Forget(l.toRequest(item)) }

// NumRequeues implements workqueue.TypedRateLimiter.
func (l *mappedLimiter[T]) NumRequeues(item T) int { return l.requests.NumRequeues(l.toRequest(item)) }

// NewBackoff returns a limiter for the retries of Gates.
func NewBackoff(requests workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimiter[types.UID] {
	return &mappedLimiter[types.UID]{requests, backoffKey}
}

// backoffKey returns the key of a Gate in a limiter. A Gate that was deleted and created again has another key.
func backoffKey(uid types.UID) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: string(uid)}}
}

// RequeueUrgent requeues a target with the urgency of a hold.
func RequeueUrgent(queues Enqueuer, key target.Key, after time.Duration) ctrl.Result {
	queues.Prioritize(key)
	return ctrl.Result{RequeueAfter: max(after, time.Millisecond)}
}
