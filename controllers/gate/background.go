package gate

import (
	"context"
	"sync"
	"time"
)

// maxBackground bounds how much work is queued. When the queue is full, work runs at once.
const maxBackground = 1024

// drainTimeout bounds how long queued work may take at shutdown. It is shorter than the shutdown timeout of the manager.
const drainTimeout = 8 * time.Second

// Background runs queued work in order, one item at a time. The zero value runs work at once. Work that is still queued at shutdown runs
// before Start returns. Later work runs at once.
type Background struct {
	work chan func(context.Context)

	mu      sync.RWMutex
	stopped bool
}

// NewBackground returns a Background whose work waits until Start.
func NewBackground() *Background {
	return &Background{work: make(chan func(context.Context), maxBackground)}
}

func (b *Background) do(ctx context.Context, work func(context.Context)) {
	if b.queue(work) {
		return
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	work(limited)
}

// queue queues work. It returns false if the queue is full or the process is shutting down.
func (b *Background) queue(work func(context.Context)) bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.stopped {
		return false
	}
	select {
	case b.work <- work:
		return true
	default:
		return false
	}
}

// Start implements manager.Runnable.
func (b *Background) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		select {
		case work := <-b.work:
			work(context.WithoutCancel(ctx))
		case <-ctx.Done():
		}
	}
	b.mu.Lock()
	b.stopped = true
	b.mu.Unlock()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	for len(b.work) > 0 && limited.Err() == nil {
		(<-b.work)(limited)
	}
	return nil
}
