package slots

import "sync"

// Slots has the things that wait for their turn to be released, by queue. The zero value
// is ready for use, even by several goroutines. It is in memory only: after a restart
// everything that waits asks again.
type Slots[Q, K comparable] struct {
	mu     sync.Mutex
	queues map[Q]*queue[K]
}

// queue is what is known of one queue.
type queue[K comparable] struct {
	waiting map[K]Item
	// called have a slot. taken are those whose slot is used by a release that is being written.
	called   map[K]Item
	taken    map[K]bool
	released int64
}

// HasSlot returns whether something has a slot.
func (t *Slots[Q, K]) HasSlot(q Q, key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasSlot(q, key)
}

// hasSlot is Look with mu held.
func (t *Slots[Q, K]) hasSlot(q Q, key K) bool {
	of, ok := t.queues[q]
	if ok {
		_, ok = of.called[key]
	}
	return ok
}

// Take takes the slots of something in some queues, for a release that is written next. If one of the slots is gone, it takes
// none and returns false. After the write, call Leave. If the write fails, the slots stay.
func (t *Slots[Q, K]) Take(key K, queues ...Q) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range queues {
		if !t.hasSlot(q, key) {
			return false
		}
	}
	for _, q := range queues {
		t.queues[q].taken[key] = true
	}
	return true
}

// Wait returns whether something has a slot. If it has none, it waits for one from now on.
func (t *Slots[Q, K]) Wait(q Q, key K, item Item) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.get(q)
	if _, ok := of.called[key]; ok {
		return true
	}
	of.waiting[key] = item
	return false
}

// Leave records that something no longer waits, and whether it was released. A taken slot counts, even if it was recalled since.
func (t *Slots[Q, K]) Leave(q Q, key K, released bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.queues[q]
	if !ok {
		return
	}
	delete(of.waiting, key)
	if _, ok := of.called[key]; released && (ok || of.taken[key]) {
		of.released++
	}
	delete(of.called, key)
	delete(of.taken, key)
}

// Eligible says which of those that wait may have their turn. The zero value stands for none.
type Eligible[K comparable] struct {
	All  bool
	Some map[K]bool
}

// Call gives the next n of a queue their turn, of those that may have it, see Take. It
// returns them, and how many of the others may have it. A turn that is not used stays.
func (t *Slots[Q, K]) Call(q Q, n int, last string, may Eligible[K]) (taken []K, left int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.get(q)
	keys := make([]K, 0, len(of.waiting))
	for key := range of.waiting {
		if may.All || may.Some[key] {
			keys = append(keys, key)
		}
	}
	taken, rest := Take(keys, n, last, of.waiting)
	for _, key := range taken {
		of.called[key] = of.waiting[key]
		delete(of.waiting, key)
	}
	return taken, len(rest)
}

// Recall takes their turn back from those that were called, because they were not told.
func (t *Slots[Q, K]) Recall(q Q, keys []K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.get(q)
	for _, key := range keys {
		if item, ok := of.called[key]; ok {
			of.waiting[key] = item
			delete(of.called, key)
		}
	}
}

// Recorded forgets some releases, because they are noted elsewhere.
func (t *Slots[Q, K]) Recorded(q Q, released int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of, ok := t.queues[q]; ok {
		of.released -= released
	}
}

// Counts returns how many of a queue wait, including those whose turn it is, and how many
// releases nobody has noted.
func (t *Slots[Q, K]) Counts(q Q) (waiting, released int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.queues[q]
	if !ok {
		return 0, 0
	}
	return int64(len(of.waiting) + len(of.called)), of.released
}

// Forget removes a queue. A key that asks again waits again.
func (t *Slots[Q, K]) Forget(q Q) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues, q)
}

// get returns a queue. It is called with mu held.
func (t *Slots[Q, K]) get(q Q) *queue[K] {
	if t.queues == nil {
		t.queues = map[Q]*queue[K]{}
	}
	if t.queues[q] == nil {
		t.queues[q] = &queue[K]{waiting: map[K]Item{}, called: map[K]Item{}, taken: map[K]bool{}}
	}
	return t.queues[q]
}

// Evict removes something that was deleted from all queues.
func (t *Slots[Q, K]) Evict(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.queues {
		delete(of.waiting, key)
		delete(of.called, key)
		delete(of.taken, key)
	}
}
