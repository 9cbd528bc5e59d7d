package ui

import "sync"

// keeper keeps values that may be asked for again, up to a size in bytes. Those that nobody has asked for in a while go first.
type keeper[V any] struct {
	mu sync.Mutex
	// young has what was put or asked for last, old what was before. When young has half of what there may be, it becomes old.
	young, old map[string]sized[V]
	size, most int
}

type sized[V any] struct {
	value V
	size  int
}

func newKeeper[V any](most int) *keeper[V] {
	return &keeper[V]{young: map[string]sized[V]{}, most: most}
}

// get returns the value of a key, and whether it has one. Nothing is kept under no key.
func (k *keeper[V]) get(key string) (V, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	found, ok := k.young[key]
	if !ok {
		if found, ok = k.old[key]; ok {
			k.add(key, found)
		}
	}
	return found.value, ok
}

// put keeps a value of some bytes.
func (k *keeper[V]) put(key string, value V, size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.add(key, sized[V]{value, size + len(key)})
}

func (k *keeper[V]) add(key string, s sized[V]) {
	if s.size > k.most/2 {
		return // it would leave no room for the others
	}
	if k.size+s.size > k.most/2 {
		k.old, k.young, k.size = k.young, map[string]sized[V]{}, 0
	}
	k.size += s.size - k.young[key].size
	k.young[key] = s
}
