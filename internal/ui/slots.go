package ui

import (
	"context"
	"slices"
	"sync"
)

// slots bounds how much work of one kind is under way, and divides it among viewers: a viewer has at most half of the slots, and a free
// slot goes to the waiting viewer that has the fewest. A single slot is for any viewer.
type slots struct {
	most int

	mu      sync.Mutex
	free    int
	taken   map[string]int
	waiting []*waiter
}

// waiter waits for a slot. granted is closed when it has one.
type waiter struct {
	viewer  string
	granted chan struct{}
}

// newSlots returns n slots. One person alone may take all of them.
func newSlots(n int, alone bool) *slots {
	s := &slots{most: max(1, n/2), free: n, taken: map[string]int{}}
	if alone {
		s.most = n
	}
	return s
}

// enter waits for a slot. Call done to release it. The error is that of the context.
func (s *slots) enter(ctx context.Context, viewer string) (done func(), err error) {
	w := &waiter{viewer, make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.grant()
	s.mu.Unlock()
	done = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release(viewer)
	}
	select {
	case <-w.granted:
		return done, nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.waiting, w); i >= 0 {
		s.waiting = slices.Delete(s.waiting, i, i+1)
	} else { // it was granted at the same time
		s.release(viewer)
	}
	return nil, ctx.Err()
}

// release is called with mu held.
func (s *slots) release(viewer string) {
	s.free++
	if s.taken[viewer]--; s.taken[viewer] == 0 {
		delete(s.taken, viewer)
	}
	s.grant()
}

// grant gives free slots to those that wait, the first of the viewers with the fewest. It is called with mu held.
func (s *slots) grant() {
	for s.free > 0 {
		next := -1
		for i, w := range s.waiting {
			if s.taken[w.viewer] < s.most && (next < 0 || s.taken[w.viewer] < s.taken[s.waiting[next].viewer]) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		w := s.waiting[next]
		s.waiting = slices.Delete(s.waiting, next, next+1)
		s.free--
		s.taken[w.viewer]++
		close(w.granted)
	}
}
