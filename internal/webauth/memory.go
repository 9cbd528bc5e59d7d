package webauth

import (
	"sync"
	"time"
)

// memory remembers answers for a while, and not more than some.
type memory[V any] struct {
	most int

	mu      sync.Mutex
	answers map[string]answer[V]
}

type answer[V any] struct {
	value V
	until time.Time
}

func newMemory[V any](most int) *memory[V] {
	return &memory[V]{most: most, answers: map[string]answer[V]{}}
}

// get returns an answer, whether there was one, and whether it still counts.
func (m *memory[V]) get(key string, now time.Time) (value V, known, counts bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, known := m.answers[key]
	// A clock that was set back makes no answer last longer.
	return a.value, known, known && now.Before(a.until) && a.until.Sub(now) <= remembered
}

func (m *memory[V]) put(key string, value V, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.answers) >= m.most {
		m.shrink(now)
	}
	m.answers[key] = answer[V]{value, now.Add(remembered)}
}

// touch returns the value of a key, or stores a new one, and keeps it for another while.
func (m *memory[V]) touch(key string, created V, now time.Time) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, known := m.answers[key]
	if !known {
		if a.value = created; len(m.answers) >= m.most {
			m.shrink(now)
		}
	}
	m.answers[key] = answer[V]{a.value, now.Add(remembered)}
	return a.value
}

// shrink forgets what does not count any more, and then any until half is left, so that it is not called again soon.
func (m *memory[V]) shrink(now time.Time) {
	for key, a := range m.answers {
		if !now.Before(a.until) {
			delete(m.answers, key)
		}
	}
	for key := range m.answers {
		if len(m.answers) <= m.most/2 {
			return
		}
		delete(m.answers, key)
	}
}

func (m *memory[V]) len() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.answers)
}
