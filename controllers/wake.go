package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Waker has things looked at.
type Waker interface {
	// Gate has a Gate looked at.
	Gate(key types.NamespacedName)
	// UrgeGate gives a Gate at least a class when it is next enqueued: Hold if a close is requested or due.
	UrgeGate(key types.NamespacedName, class queue.Class)
	// GateSoon has a Gate looked at within a second: its status is to tell how far its targets are.
	GateSoon(key types.NamespacedName)
	// Targets has targets looked at, in this order among those of the same class.
	Targets(class queue.Class, keys ...target.Key)
	// Urge has a target looked at as urgently as if it were to be held, when something wakes it next.
	Urge(key target.Key)
	// Locks has the GateLocks of namespaces looked at.
	Locks(namespaces ...string)
}

const (
	// progressInterval is how often the status of a Gate is written at most while targets are held or released.
	progressInterval = time.Second
	// progressPerSecond is how many of these all Gates write in a second: with hundreds that change at the same time, they
	// would take the time of the API server from what they tell about.
	progressPerSecond = 20
)

// Queues are those of the controllers. Keys that are added before these start wait for them.
type Queues struct {
	gates, locks workqueue.TypedRateLimitingInterface[reconcile.Request]
	targets      workqueue.TypedRateLimitingInterface[target.Key]
	// order is that of targets, and gateOrder that of Gates.
	order     *queue.Queue[target.Key]
	gateOrder *queue.Queue[reconcile.Request]
}

// gateQueue puts Gates with an event or an edge before Gates whose resync interval is over. Namespaces take turns.
type gateQueue struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	order *queue.Queue[reconcile.Request]
}

// Add implements workqueue.TypedInterface. The delays of AddAfter and AddRateLimited do not end here.
func (q *gateQueue) Add(gate reconcile.Request) {
	q.order.Urge(gate, queue.Urgency{Class: queue.Change})
	q.TypedRateLimitingInterface.Add(gate)
}

// newQueues returns queues whose retries are limited.
func newQueues(limiter func() workqueue.TypedRateLimiter[reconcile.Request]) *Queues {
	named := func(name string) workqueue.TypedRateLimitingInterface[reconcile.Request] {
		return workqueue.NewTypedRateLimitingQueueWithConfig(within{limiter(), failureInterval},
			workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{Name: name})
	}
	q := &Queues{
		locks: named("gatelock"), order: queue.New[target.Key](),
		gateOrder: queue.NewFair(func(gate reconcile.Request) string { return gate.Namespace }),
	}
	q.gates = &gateQueue{workqueue.NewTypedRateLimitingQueueWithConfig[reconcile.Request](within{limiter(), failureInterval}, workqueue.TypedRateLimitingQueueConfig[reconcile.Request]{
		Name: "gate",
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[reconcile.Request]{
			Name:  "gate",
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[reconcile.Request]{Name: "gate", Queue: q.gateOrder}),
		}),
	}), q.gateOrder}
	q.targets = workqueue.NewTypedRateLimitingQueueWithConfig[target.Key](ofKeys{limiter()}, workqueue.TypedRateLimitingQueueConfig[target.Key]{
		Name: "target",
		DelayingQueue: workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[target.Key]{
			Name:  "target",
			Queue: workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[target.Key]{Name: "target", Queue: q.order}),
		}),
	})
	return q
}

// Gate implements Waker.
func (q *Queues) Gate(key types.NamespacedName) { q.gates.Add(reconcile.Request{NamespacedName: key}) }

// UrgeGate implements Waker.
func (q *Queues) UrgeGate(key types.NamespacedName, class queue.Class) {
	q.gateOrder.Urge(reconcile.Request{NamespacedName: key}, queue.Urgency{Class: class})
}

// GateSoon implements Waker. Of several the first counts.
func (q *Queues) GateSoon(key types.NamespacedName) {
	q.gates.AddAfter(reconcile.Request{NamespacedName: key}, progressInterval)
}

// Targets implements Waker.
func (q *Queues) Targets(class queue.Class, keys ...target.Key) {
	for i, key := range keys {
		q.order.Urge(key, queue.Urgency{Class: class, Place: i})
		q.targets.Add(key)
	}
}

// Urge implements Waker.
func (q *Queues) Urge(key target.Key) { q.order.Urge(key, queue.Urgency{Class: queue.Hold}) }

// Locks implements Waker.
func (q *Queues) Locks(namespaces ...string) {
	for _, namespace := range namespaces {
		q.locks.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}})
	}
}

// failureInterval is how long to wait at most for another try: the next transition may come meanwhile, and nothing tells when
// a failure is over.
const failureInterval = time.Minute

// within bounds the delays of a limiter.
type within struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	most time.Duration
}

// When implements workqueue.TypedRateLimiter.
func (w within) When(item reconcile.Request) time.Duration {
	return min(w.TypedRateLimiter.When(item), w.most)
}

// ofKeys limits the retries of targets by a limiter of requests.
type ofKeys struct {
	requests workqueue.TypedRateLimiter[reconcile.Request]
}

func requestOf(key target.Key) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: key.GroupKind.String() + "/" + key.Name}}
}

// When implements workqueue.TypedRateLimiter.
func (l ofKeys) When(key target.Key) time.Duration { return l.requests.When(requestOf(key)) }

// Forget implements workqueue.TypedRateLimiter.
func (l ofKeys) Forget(key target.Key) { l.requests.Forget(requestOf(key)) }

// NumRequeues implements workqueue.TypedRateLimiter.
func (l ofKeys) NumRequeues(key target.Key) int { return l.requests.NumRequeues(requestOf(key)) }

// backoffOf is by what a limiter knows a Gate: one that is created again under its name is another.
func backoffOf(uid types.UID) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: string(uid)}}
}
