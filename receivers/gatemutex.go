package receivers

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// gateMutexes serializes requests per Gate, so that a user who may write a Gate in one namespace cannot delay requests for other Gates.
type gateMutexes struct {
	mu    sync.Mutex
	gates map[types.NamespacedName]*gateMutex
}

// gateMutex is the mutex of a Gate while it is in use.
type gateMutex struct {
	taken chan struct{}
	users int
}

// take locks the mutex of a Gate. It returns a function that unlocks the mutex, or an error if the context ends first.
func (t *gateMutexes) take(ctx context.Context, key types.NamespacedName) (func(), error) {
	t.mu.Lock()
	this := t.gates[key]
	if this == nil {
		this = &gateMutex{taken: make(chan struct{}, 1)}
		t.gates[key] = this
	}
	this.users++
	t.mu.Unlock()
	select {
	case this.taken <- struct{}{}:
		return func() {
			<-this.taken
			t.leave(key, this)
		}, nil
	case <-ctx.Done():
		t.leave(key, this)
		return nil, ctx.Err()
	}
}

func (t *gateMutexes) leave(key types.NamespacedName, this *gateMutex) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if this.users--; this.users == 0 {
		delete(t.gates, key)
	}
}
