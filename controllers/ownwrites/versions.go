// Package ownwrites reads and writes objects of all kinds. A read never returns a version older than the last write of this process,
// although caches lag behind the API server. A write is conditional on the version that was read.
package ownwrites

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// othersDelay is the delay before an object is reconciled after another client has written its status. It limits how fast two processes
// that disagree overwrite each other's status.
const othersDelay = time.Second

// Versions records the resource versions of objects that this process has reconciled and written, by key K. The zero value is ready for
// use. It is safe for concurrent use.
type Versions[K comparable] struct {
	mu      sync.Mutex
	objects map[K]versions
	// writing contains the objects whose writes are in progress.
	writing map[K]bool
}

// versions are the versions of one object.
type versions struct {
	uid types.UID
	// base is the version that was last reconciled, empty if unknown.
	base string
	// own lists the versions that this process has written since then. Without a base, it contains only the last version written.
	own []string
}

// Reconciles records the version of an object when its reconciliation begins. If the key belonged to a different object before, it
// returns the UID of that object, otherwise an empty UID.
func (v *Versions[K]) Reconciles(key K, obj client.Object) (replaced types.UID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.objects == nil {
		v.objects = map[K]versions{}
	}
	before, base := v.objects[key], obj.GetResourceVersion()
	own := slices.DeleteFunc(before.own, func(own string) bool { return !IsOlder(base, own) })
	v.objects[key] = versions{uid: obj.GetUID(), base: base, own: own}
	if before.uid != obj.GetUID() {
		return before.uid
	}
	return ""
}

// StartWrite records that a write of an object is in progress until end is called.
func (v *Versions[K]) StartWrite(key K) (end func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.writing == nil {
		v.writing = map[K]bool{}
	}
	v.writing[key] = true
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.writing, key)
	}
}

// IsWriting returns whether a write of an object is in progress. The event for the write may precede the response.
func (v *Versions[K]) IsWriting(key K) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.writing[key]
}

// Wrote records a version that this process has written.
func (v *Versions[K]) Wrote(key K, version string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.objects == nil {
		v.objects = map[K]versions{}
	}
	known := v.objects[key]
	if known.base == "" {
		known.own = known.own[:0]
	}
	known.own = append(known.own, version)
	v.objects[key] = known
}

// IsBehind returns whether the given version of an object is older than a version that this process has already reconciled or written.
func (v *Versions[K]) IsBehind(key K, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known, ok := v.objects[key]
	switch {
	case !ok:
		return false
	case IsOlder(version, known.base) || IsOlder(version, known.own...):
		return true
	case known.base == "" && !slices.Contains(known.own, version):
		delete(v.objects, key) // another client has written the object since then
	}
	return false
}

// IsOwn returns whether this process has written the given version of an object, and has not yet reconciled that version or a later one.
func (v *Versions[K]) IsOwn(key K, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Contains(v.objects[key].own, version)
}

// IsByOthers returns whether another client has written the given version of an object since its last reconciliation.
func (v *Versions[K]) IsByOthers(key K, version string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	known := v.objects[key]
	return version != known.base && !IsOlder(version, known.base) && !slices.Contains(known.own, version)
}

// Evict removes an object.
func (v *Versions[K]) Evict(key K) { v.evict(key) }

// evict removes an object and returns its UID, empty if it was never reconciled.
func (v *Versions[K]) evict(key K) types.UID {
	v.mu.Lock()
	defer v.mu.Unlock()
	uid := v.objects[key].uid
	delete(v.objects, key)
	return uid
}

// IsOlder returns whether a resource version is older than at least one of the others.
func IsOlder(version string, others ...string) bool {
	for _, other := range others {
		if other == "" || other == version {
			continue
		}
		if order, err := resourceversion.CompareResourceVersion(version, other); err == nil && order < 0 {
			return true
		}
	}
	return false
}

// EnqueueOthers returns a handler that enqueues an object after another client has written its status.
func EnqueueOthers(v *Versions[types.NamespacedName]) handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		key := client.ObjectKeyFromObject(e.ObjectNew)
		if v.IsByOthers(key, e.ObjectNew.GetResourceVersion()) && !equality.Semantic.DeepEqual(statusPointer(e.ObjectOld), statusPointer(e.ObjectNew)) {
			queue.AddAfter(reconcile.Request{NamespacedName: key}, othersDelay)
		}
	}}
}
