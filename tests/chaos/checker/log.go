// Package checker says whether a cluster is as gating-controller promises. It knows what
// people and Git did, reads what the API server has, and shares no code with the
// controller but the types of the API.
package checker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Log is what people, Git and others than the controller did.
type Log struct {
	mu       sync.Mutex
	writes   map[types.UID]map[string]time.Time
	exists   map[types.UID]string
	deleted  map[types.UID]time.Time
	requests map[types.UID][]Request
	// disturbed are instants, in order, at which something was missing.
	disturbed []time.Time
}

// NewLog returns an empty log.
func NewLog() *Log {
	return &Log{writes: map[types.UID]map[string]time.Time{}, exists: map[types.UID]string{}, deleted: map[types.UID]time.Time{}, requests: map[types.UID][]Request{}}
}

// Wrote notes that somebody made a version of an object.
func (l *Log) Wrote(obj client.Object, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	uid := obj.GetUID()
	if l.writes[uid] == nil {
		l.writes[uid] = map[string]time.Time{}
	}
	l.writes[uid][obj.GetResourceVersion()] = at
	l.exists[uid] = name(obj)
}

// Deleted notes that somebody deletes an object.
func (l *Log) Deleted(obj client.Object, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.exists, obj.GetUID())
	l.deleted[obj.GetUID()] = at
}

// deletedBy returns whether somebody had deleted an object at an instant. It may be gone
// without a version that says so.
func (l *Log) deletedBy(uid types.UID, instant time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.deleted[uid]
	return ok && !at.After(instant)
}

// Requested notes a request that somebody made of a Gate.
func (l *Log) Requested(gate client.Object, r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[gate.GetUID()] = append(l.requests[gate.GetUID()], r)
}

// Requests returns all requests that were made of a Gate, in order.
func (l *Log) Requests(gate types.UID) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Request{}, l.requests[gate]...)
}

// wroteSince returns whether somebody wrote an object after an instant.
func (l *Log) wroteSince(uid types.UID, after time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, at := range l.writes[uid] {
		if at.After(after) {
			return true
		}
	}
	return false
}

// wrote returns when somebody made a version of an object.
func (l *Log) wrote(uid types.UID, version string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.writes[uid][version]
	return at, ok
}

func name(obj client.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
