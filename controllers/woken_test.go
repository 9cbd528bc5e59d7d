package controllers

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

// woken is a Waker that keeps what was woken until somebody takes it.
type woken struct {
	mu sync.Mutex
	wokenNow
	gates view.UniqueKeys[types.NamespacedName]
}

// wokenNow is what was woken besides Gates, each once.
type wokenNow struct {
	targets []target.Key
	locks   []string
}

func (w *woken) Gate(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gates.AddKeys(key)
}

func (w *woken) PrioritizeGate(types.NamespacedName, queue.Class) {}

func (w *woken) GateSoon(key types.NamespacedName) { w.Gate(key) }

func (w *woken) Targets(_ queue.Class, keys ...target.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.targets = distinct(w.targets, keys)
}

func (w *woken) Prioritize(target.Key) {}

func (w *woken) Locks(namespaces ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.locks = distinct(w.locks, namespaces)
}

func distinct[T comparable](to, keys []T) []T {
	all := view.UniqueKeys[T]{}
	all.AddKeys(to...)
	all.AddKeys(keys...)
	return all.Keys
}

// take returns what was woken since the last call.
func (w *woken) take() wokenNow {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.wokenNow
	w.wokenNow = wokenNow{}
	return now
}

// has returns whether something was woken, of the Gates one.
func (w *woken) has(gate types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	has := w.gates.Has[gate] || len(w.targets)+len(w.locks) > 0
	delete(w.gates.Has, gate)
	return has
}

// liveLocks is the cache of GateLocks, as if they were installed or not.
type liveLocks struct {
	w         *world
	installed bool
}

// Lock implements LockReader.
func (l *liveLocks) Lock(ctx context.Context, namespace string) (*lockv1alpha1.GateLock, error) {
	if !l.installed {
		return nil, nil //nolint:nilnil // as LockReader says
	}
	key := view.LockKey(namespace, l.w.Own)
	if key.Namespace == "" {
		return nil, nil //nolint:nilnil // as LockReader says
	}
	return view.ReadLock(ctx, cluster.Client, key)
}

// Naming implements LockReader.
func (l *liveLocks) Naming(ctx context.Context, gate string) ([]string, error) {
	if !l.installed {
		return nil, nil
	}
	var namespaces []string
	for _, namespace := range l.w.namespaces {
		list := &lockv1alpha1.GateLockList{}
		if err := cluster.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
		namespaces = append(namespaces, view.Naming(list, gate, l.w.Own)...)
	}
	return namespaces, nil
}
