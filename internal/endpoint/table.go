// Package endpoint contains the common code of endpoints with secret paths. It holds the table of paths, reads the tokens that paths
// are derived from, and runs the server with its limits.
package endpoint

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Entry is an object that is ready to be served, of type E.
type Entry[E any] interface {
	comparable
	// Key returns the namespace and name of the object.
	Key() types.NamespacedName
	// Created returns when the object was created.
	Created() time.Time
	// Paths returns the paths at which the object is served.
	Paths() []string
	// Bearers returns the tokens that identify the object at a path that several entries share.
	Bearers() []string
	// Inherit copies the state of the previous entry of the object.
	Inherit(before E)
}

// Table holds the objects of a kind that are ready to be served. Each replica has its own.
type Table[E Entry[E]] struct {
	mu      sync.RWMutex
	entries map[types.NamespacedName]E
	// paths holds the entries by the digest of a path, so that the time of a lookup reveals nothing about existing paths.
	paths map[[sha256.Size]byte]E
	// bearers holds the entries by the digest of a token, for the same reason.
	bearers map[[sha256.Size]byte]map[E]bool
	// unsettled contains objects that may or may not become ready.
	unsettled map[types.NamespacedName]bool
	// settled contains all reconciled objects, including the unsettled ones.
	settled map[types.NamespacedName]bool
}

// NewTable returns an empty Table.
func NewTable[E Entry[E]]() *Table[E] {
	return &Table[E]{
		entries: map[types.NamespacedName]E{}, paths: map[[sha256.Size]byte]E{}, bearers: map[[sha256.Size]byte]map[E]bool{},
		unsettled: map[types.NamespacedName]bool{}, settled: map[types.NamespacedName]bool{},
	}
}

// Put replaces the entry of an object. The zero value removes it. unsettled is true if the object may yet become ready, at any path. If an
// older object owns one of the paths, Put adds no entry and returns the namespace and name of that object. Younger owners of the paths lose
// their entries.
func (t *Table[E]) Put(key types.NamespacedName, e E, unsettled bool) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.settled[key] = true
	delete(t.unsettled, key)
	if unsettled {
		t.unsettled[key] = true
	}
	var none E
	before := t.entries[key]
	t.drop(before)
	if e == none {
		return ""
	}
	// All replicas must agree on the owner of a path, regardless of the order of reconciliations.
	for _, digest := range digestsOf(e.Paths()) {
		if other := t.paths[digest]; other != none && !precedes(e, other) {
			return other.Key().String()
		}
	}
	for _, digest := range digestsOf(e.Paths()) {
		t.drop(t.paths[digest])
	}
	if before != none {
		e.Inherit(before)
	}
	t.add(e)
	return ""
}

// Forget removes a deleted object.
func (t *Table[E]) Forget(key types.NamespacedName) {
	var none E
	t.Put(key, none, false)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.settled, key)
}

// precedes returns whether e, rather than other, owns a path that both have. The older object owns the path. If both have the same age, the
// object whose name sorts first does.
func precedes[E Entry[E]](e, other E) bool {
	if order := e.Created().Compare(other.Created()); order != 0 {
		return order < 0
	}
	return e.Key().String() < other.Key().String()
}

func (t *Table[E]) add(e E) {
	t.entries[e.Key()] = e
	for _, digest := range digestsOf(e.Paths()) {
		t.paths[digest] = e
	}
	for _, digest := range digestsOf(e.Bearers()) {
		if t.bearers[digest] == nil {
			t.bearers[digest] = map[E]bool{}
		}
		t.bearers[digest][e] = true
	}
}

// drop removes an entry. It ignores the zero value.
func (t *Table[E]) drop(e E) {
	var none E
	if e == none {
		return
	}
	delete(t.entries, e.Key())
	for _, digest := range digestsOf(e.Paths()) {
		delete(t.paths, digest)
	}
	for _, digest := range digestsOf(e.Bearers()) {
		if delete(t.bearers[digest], e); len(t.bearers[digest]) == 0 {
			delete(t.bearers, digest)
		}
	}
}

// Find returns the entry with a path, the zero value if there is none. certain is false if an unsettled object may have the path, too.
func (t *Table[E]) Find(path string) (e E, certain bool) {
	digest := sha256.Sum256([]byte(path))
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.paths[digest], len(t.unsettled) == 0
}

// Get returns the entry of an object, the zero value if it has none.
func (t *Table[E]) Get(key types.NamespacedName) E {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.entries[key]
}

// FindBearers returns the entries with a token, in any order. certain is false if unsettled objects may have the token, too.
func (t *Table[E]) FindBearers(token string) (found []E, certain bool) {
	digest := sha256.Sum256([]byte(token))
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Keys(t.bearers[digest])), len(t.unsettled) == 0
}

// IsReconciled returns whether an object has been reconciled.
func (t *Table[E]) IsReconciled(key types.NamespacedName) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, ok := t.settled[key]
	return ok
}

// Len returns the total size of the maps of the table. It is zero only if nothing is stored.
func (t *Table[E]) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.entries) + len(t.paths) + len(t.bearers) + len(t.unsettled) + len(t.settled)
}

// digestsOf returns the digests of the secrets that are not empty.
func digestsOf(secrets []string) (digests [][sha256.Size]byte) {
	for _, secret := range secrets {
		if secret != "" {
			digests = append(digests, sha256.Sum256([]byte(secret)))
		}
	}
	return digests
}
