// Package enqueue has the queues of the controllers, and the event handlers that add to them.
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

// Enqueuer has things looked at.
type Enqueuer interface {
	// Gate has a Gate looked at.
	Gate(key types.NamespacedName)
	// PrioritizeGate gives a Gate at least a class when it is next enqueued: Hold if a close is requested or due.
	PrioritizeGate(key types.NamespacedName, class queue.Class)
	// GateSoon has a Gate looked at within a second: its status is to tell how far its targets are.
	GateSoon(key types.NamespacedName)
	// Targets enqueues targets, GatedSources among them, in this order among those of the same class.
	Targets(class queue.Class, keys ...target.Key)
	// Prioritize has a target looked at as urgently as if it were to be held, when something wakes it next.
	Prioritize(key target.Key)
	// Locks has the GateLocks of namespaces looked at.
	Locks(namespaces ...string)
}

const (
	// ProgressInterval is how often the status of a Gate is written at most while targets are held or released.
	ProgressInterval = time.Second
	// ProgressPerSecond is how many of these all Gates write in a second: with hundreds that change at the same time, they
	// would take the time of the API server from what they tell about.
	ProgressPerSecond = 20
)

// Queues are those of the controllers. Keys that are added before these start wait for them.
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

// newOrdered returns a queue with a name, in an order, whose retries are limited.
func newOrdered[T comparable](name string, order *queue.Queue[T], limiter workqueue.TypedRateLimiter[T]) ordered[T] {
	return ordered[T]{workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[T]{
		Name: name,
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
			Name:  name,
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[T]{Name: name, Queue: order}),
		}),
	}), order}
}

// addUrgent adds a key with at least an urgency.
func (q ordered[T]) addUrgent(key T, urgency queue.Priority) {
	q.order.Prioritize(key, urgency)
	q.Add(key)
}

// gateQueue puts Gates with an event or an edge before Gates whose resync interval is over. Namespaces take turns.
type gateQueue struct {
	ordered[reconcile.Request]
}

// Add implements workqueue.TypedInterface. The delays of AddAfter and AddRateLimited do not end here.
func (q gateQueue) Add(gate reconcile.Request) {
	q.addUrgent(gate, queue.Priority{Class: queue.Change})
}

// NewQueues returns queues whose retries are limited.
func NewQueues(limiter func() workqueue.TypedRateLimiter[reconcile.Request]) *Queues {
	return &Queues{
		LockQueue: workqueue.NewTypedRateLimitingQueueWithConfig(Within{limiter(), FailureInterval},
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: "gatelock"}),
		GateQueue: gateQueue{newOrdered("gate", queue.NewFair(func(gate reconcile.Request) string { return gate.Namespace }),
			workqueue.TypedRateLimiter[reconcile.Request](Within{limiter(), FailureInterval}))},
		TargetQueue:      newOrdered("target", queue.New[target.Key](), workqueue.TypedRateLimiter[target.Key](&mappedLimiter[target.Key]{limiter(), targetRequest})),
		GatedSourceQueue: newOrdered("gatedsource", queue.New[reconcile.Request](), limiter()),
	}
}

// Gate implements Waker.
func (q *Queues) Gate(key types.NamespacedName) {
	q.GateQueue.Add(reconcile.Request{NamespacedName: key})
}

// PrioritizeGate implements Waker.
func (q *Queues) PrioritizeGate(key types.NamespacedName, class queue.Class) {
	q.GateQueue.order.Prioritize(reconcile.Request{NamespacedName: key}, queue.Priority{Class: class})
}

// GateSoon implements Waker. Of several the first counts.
func (q *Queues) GateSoon(key types.NamespacedName) {
	q.GateQueue.AddAfter(reconcile.Request{NamespacedName: key}, ProgressInterval)
}

// Targets implements Waker.
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

// Prioritize implements Waker.
func (q *Queues) Prioritize(key target.Key) {
	urgency := queue.Priority{Class: queue.Hold}
	if target.Pins(key.GroupKind) {
		q.GatedSourceQueue.order.Prioritize(reconcile.Request{NamespacedName: key.NamespacedName}, urgency)
	} else {
		q.TargetQueue.order.Prioritize(key, urgency)
	}
}

// Locks implements Waker.
func (q *Queues) Locks(namespaces ...string) {
	for _, namespace := range namespaces {
		q.LockQueue.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}
}

// FailureInterval is how long to wait at most for another try: the next transition may come meanwhile, and nothing tells when
// a failure is over.
const FailureInterval = time.Minute

// Within bounds the delays of a limiter.
type Within struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	Most time.Duration
}

// When implements workqueue.TypedRateLimiter.
func (w Within) When(item reconcile.Request) time.Duration {
	return min(w.TypedRateLimiter.When(item), w.Most)
}

// mappedLimiter limits the retries of items by a limiter of requests.
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

// NewBackoff returns a limiter of the retries of Gates.
func NewBackoff(requests workqueue.TypedRateLimiter[reconcile.Request]) workqueue.TypedRateLimiter[types.UID] {
	return &mappedLimiter[types.UID]{requests, backoffKey}
}

// backoffKey is by what a limiter knows a Gate: one that is created again under its name is another.
func backoffKey(uid types.UID) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: string(uid)}}
}

// RequeueUrgent requeues a target with the urgency of a hold.
func RequeueUrgent(wake Enqueuer, key target.Key, after time.Duration) ctrl.Result {
	wake.Prioritize(key)
	return ctrl.Result{RequeueAfter: max(after, time.Millisecond)}
}
