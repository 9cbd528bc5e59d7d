package slots

import "sync"

// Slots assigns release slots to waiting keys, by queue. The zero value is ready for use. Slots is safe for concurrent use. It exists only
// in memory, so all waiting keys queue again after a restart.
type Slots[Q, K comparable] struct {
	mu     sync.Mutex
	queues map[Q]*queue[K]
}

// queue is the state of one queue.
type queue[K comparable] struct {
	waiting map[K]Item
	// called holds the keys with a slot. taken holds the keys whose slot is used by a release that is being written.
	called   map[K]Item
	taken    map[K]bool
	released int64
}

// HasSlot returns whether a key has a slot.
func (t *Slots[Q, K]) HasSlot(q Q, key K) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hasSlot(q, key)
}

// hasSlot is like HasSlot. The caller must hold mu.
func (t *Slots[Q, K]) hasSlot(q Q, key K) bool {
	of, ok := t.queues[q]
	if ok {
		_, ok = of.called[key]
	}
	return ok
}

// Take takes the slots of a key in the given queues, for a release that is about to be written. If one of the slots is missing, it takes
// none and returns false. Call Leave after the write. If the write fails, the key keeps its slots.
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

// Wait returns whether a key has a slot. If it has none, it adds the key to the queue.
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

// Leave records that a key no longer waits, and whether it was released. A taken slot counts even if it has been withdrawn since.
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

// Eligible selects the waiting keys that may get a slot. The zero value selects none.
type Eligible[K comparable] struct {
	All  bool
	Some map[K]bool
}

// Call assigns slots to the next n eligible keys of a queue, in the order of Take. It returns these keys, and how many other keys are
// eligible. Unused slots stay assigned.
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

// Recall withdraws the slots of keys whose release was not enqueued.
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

// Recorded subtracts releases from the count of a queue, because the status now includes them.
func (t *Slots[Q, K]) Recorded(q Q, released int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of, ok := t.queues[q]; ok {
		of.released -= released
	}
}

// Counts returns how many keys of a queue wait, including those with a slot, and how many releases are not in the status yet.
func (t *Slots[Q, K]) Counts(q Q) (waiting, released int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of, ok := t.queues[q]
	if !ok {
		return 0, 0
	}
	return int64(len(of.waiting) + len(of.called)), of.released
}

// Forget removes a queue. The next Wait of a key adds it again.
func (t *Slots[Q, K]) Forget(q Q) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.queues, q)
}

// get returns a queue, and creates it if it is missing. The caller must hold mu.
func (t *Slots[Q, K]) get(q Q) *queue[K] {
	if t.queues == nil {
		t.queues = map[Q]*queue[K]{}
	}
	if t.queues[q] == nil {
		t.queues[q] = &queue[K]{waiting: map[K]Item{}, called: map[K]Item{}, taken: map[K]bool{}}
	}
	return t.queues[q]
}

// Evict removes a deleted key from all queues.
func (t *Slots[Q, K]) Evict(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range t.queues {
		delete(of.waiting, key)
		delete(of.called, key)
		delete(of.taken, key)
	}
}
