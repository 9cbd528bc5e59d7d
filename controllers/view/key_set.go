package view

import "github.com/fluxcd/gating-controller/internal/target"

// UniqueKeys is a list of distinct keys in insertion order.
type UniqueKeys[T comparable] struct {
	Keys []T
	Has  map[T]bool
}

// KeySet is a set of the keys of targets.
type KeySet = UniqueKeys[target.Key]

// AddKeys adds the keys that are not in the set yet.
func (s *UniqueKeys[T]) AddKeys(keys ...T) {
	if s.Has == nil {
		s.Has = map[T]bool{}
	}
	for _, key := range keys {
		if !s.Has[key] {
			s.Has[key] = true
			s.Keys = append(s.Keys, key)
		}
	}
}
