package controllertest

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Enqueued is a Waker that keeps what was woken until somebody takes it.
type Enqueued struct {
	mu sync.Mutex
	Pending
	gates view.UniqueKeys[types.NamespacedName]
}

// Pending is what was woken besides Gates, each once.
type Pending struct {
	TargetKeys     []target.Key
	LockNamespaces []string
}

func (w *Enqueued) Gate(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gates.AddKeys(key)
}

func (w *Enqueued) PrioritizeGate(types.NamespacedName, queue.Class) {}

func (w *Enqueued) GateSoon(key types.NamespacedName) { w.Gate(key) }

func (w *Enqueued) Targets(_ queue.Class, keys ...target.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.TargetKeys = distinct(w.TargetKeys, keys)
}

func (w *Enqueued) Prioritize(target.Key) {}

func (w *Enqueued) Locks(namespaces ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.LockNamespaces = distinct(w.LockNamespaces, namespaces)
}

func distinct[T comparable](to, keys []T) []T {
	all := view.UniqueKeys[T]{}
	all.AddKeys(to...)
	all.AddKeys(keys...)
	return all.Keys
}

// Take returns what was woken since the last call.
func (w *Enqueued) Take() Pending {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.Pending
	w.Pending = Pending{}
	return now
}

// Has returns whether something was woken, of the Gates one.
func (w *Enqueued) Has(gate types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.gates.Has[gate] || len(w.TargetKeys)+len(w.LockNamespaces) > 0
	delete(w.gates.Has, gate)
	return has
}

// LiveLocks is the cache of GateLocks, as if they were installed or not.
type LiveLocks struct {
	World     *World
	Installed bool
}

// Lock implements LockReader.
func (l *LiveLocks) Lock(ctx context.Context, namespace string) (*lockv1alpha1.GateLock, error) {
	if !l.Installed {
		return nil, nil //nolint:nilnil // as LockReader says
	}
	key := view.LockKey(namespace, l.World.Own)
	if key.Namespace == "" {
		return nil, nil //nolint:nilnil // as LockReader says
	}
	return view.ReadLock(ctx, controlPlane.Client, key)
}

// Naming implements LockReader.
func (l *LiveLocks) Naming(ctx context.Context, gate string) ([]string, error) {
	if !l.Installed {
		return nil, nil
	}
	var namespaces []string
	for _, namespace := range l.World.AllNamespaces {
		list := &lockv1alpha1.GateLockList{}
		if err := controlPlane.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		namespaces = append(namespaces, view.Naming(list, gate, l.World.Own)...)
	}
	return namespaces, nil
}
