// Package checker checks whether a cluster has the state that gating-controller promises. It records the actions of users and Git, reads
// the objects from the API server, and shares no code with the controller except the API types.
package checker

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Log records the actions of users, Git and all clients other than the controller.
type Log struct {
	mu       sync.Mutex
	writes   map[types.UID]map[string]time.Time
	exists   map[types.UID]string
	deleted  map[types.UID]time.Time
	requests map[types.UID][]Request
	// disturbed are the instants of disturbances, in order.
	disturbed []time.Time
}

// NewLog returns an empty log.
func NewLog() *Log {
	return &Log{writes: map[types.UID]map[string]time.Time{}, exists: map[types.UID]string{}, deleted: map[types.UID]time.Time{}, requests: map[types.UID][]Request{}}
}

// Wrote records that another client wrote a version of an object.
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

// Deleted records that another client deletes an object.
func (l *Log) Deleted(obj client.Object, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.exists, obj.GetUID())
	l.deleted[obj.GetUID()] = at
}

// deletedBy returns whether a client had deleted an object at an instant. The object may disappear without a version that is marked for
// deletion.
func (l *Log) deletedBy(uid types.UID, instant time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.deleted[uid]
	return ok && !at.After(instant)
}

// Requested records a request on a Gate.
func (l *Log) Requested(gate client.Object, r Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests[gate.GetUID()] = append(l.requests[gate.GetUID()], r)
}

// Requests returns all requests on a Gate, in order.
func (l *Log) Requests(gate types.UID) []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Request{}, l.requests[gate]...)
}

// wroteSince returns whether another client wrote an object after an instant.
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

// wrote returns when another client wrote a version of an object.
func (l *Log) wrote(uid types.UID, version string) (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, ok := l.writes[uid][version]
	return at, ok
}

func name(obj client.Object) string {
	return obj.GetObjectKind().GroupVersionKind().Kind + " " + obj.GetNamespace() + "/" + obj.GetName()
}
