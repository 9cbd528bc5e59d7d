package pace

import "sync"

// Turns has the things that wait for their turn to be released, by queue. The zero value
// is ready for use, even by several goroutines. It is in memory only: after a restart
// everything that waits asks again.
type Turns[Q, K comparable] struct {
	mu     sync.Mutex
	queues map[Q]*queue[K]
}

// queue is what is known of one queue.
type queue[K comparable] struct {
	waiting map[K]Item
	// called are those whose turn it is.
	called   map[K]Item
	released int64
}

// Ask returns whether it is the turn of something. If it is not, it waits from now on.
func (t *Turns[Q, K]) Ask(q Q, key K, item Item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(q)
	if _, ok := of.called[key]; ok {
		return true
	}
	of.waiting[key] = item
	return false
}

// Leave notes that something no longer waits, and whether it was released.
func (t *Turns[Q, K]) Leave(q Q, key K, released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.queues[q]
	if !ok {
		return
	}
	delete(of.waiting, key)
	if _, ok := of.called[key]; ok && released {
		of.released++
	}
	delete(of.called, key)
}

// Call gives the next n of a queue their turn, of those that may have it, see Take. It
// returns them, and how many of the others may have it. A turn that is not used stays.
func (t *Turns[Q, K]) Call(q Q, n int, last string, may func(K) bool) (taken []K, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(q)
	keys := make([]K, 0, len(of.waiting))
	for key := range of.waiting {
		if may(key) {
			keys = append(keys, key)
		}
	}
	taken, rest := Take(keys, n, last, func(key K) Item { return of.waiting[key] })
	for _, key := range taken {
		of.called[key] = of.waiting[key]
		delete(of.waiting, key)
	}
	return taken, len(rest)
}

// Recall takes their turn back from those that were called, because they were not told.
func (t *Turns[Q, K]) Recall(q Q, keys []K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.of(q)
	for _, key := range keys {
		if item, ok := of.called[key]; ok {
			of.waiting[key] = item
			delete(of.called, key)
		}
	}
}

// Noted forgets some releases, because they are noted elsewhere.
func (t *Turns[Q, K]) Noted(q Q, released int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of, ok := t.queues[q]; ok {
		of.released -= released
	}
}

// Counts returns how many of a queue wait, including those whose turn it is, and how many
// releases nobody has noted.
func (t *Turns[Q, K]) Counts(q Q) (waiting, released int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.queues[q]
	if !ok {
		return 0, 0
	}
	return int64(len(of.waiting) + len(of.called)), of.released
}

// Close forgets a queue. A key that asks again waits again.
func (t *Turns[Q, K]) Close(q Q) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues, q)
}

// of returns a queue. It is called with mu held.
func (t *Turns[Q, K]) of(q Q) *queue[K] {
	if t.queues == nil {
		t.queues = map[Q]*queue[K]{}
	}
	if t.queues[q] == nil {
		t.queues[q] = &queue[K]{waiting: map[K]Item{}, called: map[K]Item{}}
	}
	return t.queues[q]
}

// Forget notes that something is gone. It no longer waits in any queue.
func (t *Turns[Q, K]) Forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.queues {
		delete(of.waiting, key)
		delete(of.called, key)
	}
}
