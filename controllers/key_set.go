package controllers

import "github.com/fluxcd/gating-controller/internal/target"

// keySetOf is a list of keys, each once, in the order in which they came.
type keySetOf[T comparable] struct {
	keys []T
	has  map[T]bool
}

type keySet = keySetOf[target.Key]

func (s *keySetOf[T]) addKeys(keys ...T) {
	if s.has == nil {
		s.has = map[T]bool{}
	}
	for _, key := range keys {
		if !s.has[key] {
			s.has[key] = true
			s.keys = append(s.keys, key)
		}
	}
}
