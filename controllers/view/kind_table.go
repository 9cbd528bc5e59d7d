package view

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/target"
)

const (
	// readGrace bounds how long decisions wait for the objects of a kind after a read has failed.
	readGrace = 10 * time.Second

	// readPatience bounds this wait if no read has failed. It equals the default CacheSyncTimeout of controller-runtime.
	readPatience = 2 * time.Minute
)

// kindTable stores the watched kinds.
type kindTable struct {
	// Mu is never held during a request to the API server.
	Mu    sync.RWMutex
	Kinds map[schema.GroupKind]watchedKind
	// syncing contains a lock for each kind, held during Sync.
	syncing map[schema.GroupKind]*sync.Mutex
	// faults stores the reasons why kinds cannot be held.
	faults map[schema.GroupKind]UnsupportedError
}

func newKindTable() kindTable {
	return kindTable{
		Kinds: map[schema.GroupKind]watchedKind{}, syncing: map[schema.GroupKind]*sync.Mutex{}, faults: map[schema.GroupKind]UnsupportedError{},
	}
}

type watchedKind struct {
	schema.GroupVersionKind
	definition target.Definition
	// synced is closed when the objects have been read, and grace when decisions stop waiting for that.
	synced, grace <-chan struct{}
	// delivered is closed once the handler has received an event for each object.
	delivered <-chan struct{}
	// failed ends the wait after readGrace.
	failed func()
}

// newWatchedKind returns a kind whose objects have not been read yet.
func newWatchedKind(gvk schema.GroupVersionKind, definition target.Definition, synced <-chan struct{}) watchedKind {
	grace := make(chan struct{})
	end := sync.OnceFunc(func() { close(grace) })
	time.AfterFunc(readPatience, end)
	return watchedKind{
		GroupVersionKind: gvk, definition: definition, synced: synced, delivered: synced, grace: grace,
		failed: sync.OnceFunc(func() { time.AfterFunc(readGrace, end) }),
	}
}

// syncLock returns the lock that Sync of a kind holds.
func (c *kindTable) syncLock(kind schema.GroupKind) *sync.Mutex {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	if c.syncing[kind] == nil {
		c.syncing[kind] = &sync.Mutex{}
	}
	return c.syncing[kind]
}

// Kind returns a watched kind. It returns false if the kind is not watched.
func (c *kindTable) Kind(kind schema.GroupKind) (watchedKind, bool) {
	c.Mu.RLock()
	defer c.Mu.RUnlock()
	known, ok := c.Kinds[kind]
	return known, ok
}

// put replaces a watched kind. A nil value removes it.
func (c *kindTable) put(kind schema.GroupKind, known *watchedKind) {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	delete(c.Kinds, kind)
	if known != nil {
		c.Kinds[kind] = *known
	}
}

// refuse records the reason why a kind cannot be held, empty if it can be held. It returns whether the reason has changed.
func (c *kindTable) refuse(kind schema.GroupKind, fault UnsupportedError) bool {
	c.Mu.Lock()
	defer c.Mu.Unlock()
	before := c.faults[kind]
	c.faults[kind] = fault
	return before != fault
}

// missing returns the error for a kind that is not watched.
func (c *kindTable) missing(kind schema.GroupKind) error {
	c.Mu.RLock()
	defer c.Mu.RUnlock()
	if fault := c.faults[kind]; fault != "" {
		return fault
	}
	return fmt.Errorf("kind %s %w", kind, ErrNotInstalled)
}

// isSynced returns whether the objects of a kind have been read.
func (k watchedKind) isSynced() bool {
	select {
	case <-k.synced:
		return true
	default:
		return false
	}
}

// WhenRead calls a function when the objects of a kind have been read and delivered to the handler, or when decisions stop waiting for
// that.
func (c *kindTable) WhenRead(kind schema.GroupKind, do func()) {
	watched, ok := c.Kind(kind)
	if !ok {
		do()
		return
	}
	go func() {
		select {
		case <-watched.delivered:
		case <-watched.grace:
		}
		do()
	}()
}

// Failed records that the objects of a kind could not be listed or watched.
func (c *kindTable) Failed(kind schema.GroupKind) {
	if known, ok := c.Kind(kind); ok {
		known.failed()
	}
}
