package waves

import (
	"math/bits"
	"slices"

	"github.com/fluxcd/gating-controller/internal/target"
)

// fault returns the first fault of the waves, nil if there is none.
func (r *Release) fault(sizes []int) *Fault {
	for _, key := range r.keys {
		if m := r.Members[key]; bits.OnesCount16(m.Matches) > 1 {
			first := bits.TrailingZeros16(m.Matches)
			second := bits.TrailingZeros16(m.Matches &^ (1 << first))
			return &Fault{Kind: Overlap, Waves: []int{first, second}, Targets: []target.Key{key}}
		}
	}
	for wave, size := range sizes[:r.rest()] {
		if size == 0 {
			return &Fault{Kind: Empty, Waves: []int{wave}}
		}
	}
	if cycle := r.findCycle(); cycle != nil {
		return &Fault{Kind: Cycle, Targets: cycle}
	}
	return nil
}

// findCycle returns a cycle of waiting targets that depend on each other, nil if there is none.
func (r *Release) findCycle() []target.Key {
	done := map[target.Key]bool{}
	for _, key := range r.keys {
		if len(r.Members[key].Needs) == 0 {
			continue
		}
		if found := r.findCycleFrom(key, done); found != nil {
			return found
		}
	}
	return nil
}

// findCycleFrom returns a cycle that can be reached from a target without passing targets in done, nil if there is none. It is not
// recursive, because a chain can have as many elements as there are targets.
func (r *Release) findCycleFrom(start target.Key, done map[target.Key]bool) []target.Key {
	path, next, on := []target.Key{start}, []int{0}, map[target.Key]int{start: 0}
	for len(path) > 0 {
		last := len(path) - 1
		needs := r.needs(path[last])
		if done[path[last]] || next[last] == len(needs) {
			done[path[last]] = true
			delete(on, path[last])
			path, next = path[:last], next[:last]
			continue
		}
		need := needs[next[last]]
		next[last]++
		if at, is := on[need]; is {
			return slices.Clone(path[at:])
		}
		on[need] = len(path)
		path, next = append(path, need), append(next, 0)
	}
	return nil
}

// needs returns the held targets that a held target depends on, except targets of later waves.
func (r *Release) needs(key target.Key) []target.Key {
	m := r.Members[key]
	if m.Phase != Held {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(m.Needs), func(need target.Key) bool {
		other, ok := r.Members[need]
		return !ok || other.Phase != Held || other.wave(r.rest()) > m.wave(r.rest())
	})
}
