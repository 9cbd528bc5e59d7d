package receivers

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// gateMutexes makes requests on one Gate wait for each other, and for no other Gate's. Somebody
// who may write a Gate in one namespace must not keep others from being closed.
type gateMutexes struct {
	mu    sync.Mutex
	gates map[types.NamespacedName]*gateMutex
}

// gateMutex belongs to a Gate as long as somebody has it or waits for it.
type gateMutex struct {
	taken chan struct{}
	users int
}

// take waits for the turn of a Gate, or until the context is done. It returns a function
// that gives the turn back.
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
