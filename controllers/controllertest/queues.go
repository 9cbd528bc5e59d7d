package controllertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/gatedsource"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Queues are the queues of the controllers. Reports on the progress of a Gate are not delayed.
type Queues struct {
	*enqueue.Queues
	// gates are the Gates that were taken from the queue but are not reconciled yet.
	gates map[types.NamespacedName]bool
}

// NewQueues returns empty queues that shut down at the end of a test.
func NewQueues(t testing.TB) *Queues {
	q := &Queues{enqueue.NewQueues(runtimectrl.GetDefaultRateLimiter), map[types.NamespacedName]bool{}}
	t.Cleanup(func() {
		q.LockQueue.ShutDown()
		q.GateQueue.ShutDown()
		q.TargetQueue.ShutDown()
		q.GatedSourceQueue.ShutDown()
	})
	return q
}

// GateSoon implements enqueue.Enqueuer.
func (q *Queues) GateSoon(key types.NamespacedName) { q.Gate(key) }

// process calls do for the waiting items of a queue in order.
func process[T comparable](q workqueue.TypedInterface[T], do func(T)) {
	for n := q.Len(); n > 0; n-- {
		item, _ := q.Get()
		do(item)
		q.Done(item)
	}
}

// TakeGate returns whether a Gate was enqueued since the last call.
func (q *Queues) TakeGate(key types.NamespacedName) bool {
	process(q.GateQueue, func(r reconcile.Request) { q.gates[r.NamespacedName] = true })
	was := q.gates[key]
	delete(q.gates, key)
	return was
}

// TakeTargets returns the enqueued targets.
func (q *Queues) TakeTargets() (keys []target.Key) {
	q.targets(func(key target.Key) { keys = append(keys, key) })
	return keys
}

// targets processes the enqueued targets.
func (q *Queues) targets(do func(target.Key)) {
	process(q.TargetQueue, do)
	process(q.GatedSourceQueue, func(r reconcile.Request) { do(gatedsource.TargetKey(r.NamespacedName)) })
}

// locks processes the namespaces of the enqueued GateLocks.
func (q *Queues) locks(do func(namespace string)) {
	process(q.LockQueue, func(r reconcile.Request) { do(r.Name) })
}

// Clear drops the enqueued targets and GateLocks.
func (q *Queues) Clear() {
	q.TakeTargets()
	q.locks(func(string) {})
}

// isEmpty returns whether no target and no GateLock is enqueued.
func (q *Queues) isEmpty() bool {
	return q.LockQueue.Len()+q.TargetQueue.Len()+q.GatedSourceQueue.Len() == 0
}
