package waves

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Book has the targets of the Gates that release in waves, by Gate. The zero value is ready for use, even by several
// goroutines. It is in memory only: after a restart all targets are looked at once.
type Book[G comparable] struct {
	// gates is how many Gates the book has. It is read for each event of a target.
	gates atomic.Int64

	mu      sync.Mutex
	members map[G]map[target.Key]entry
}

// entry is a member, and the generation of the Gate whose waves were looked at.
type entry struct {
	Member
	generation int64
}

// IsEmpty returns whether no Gate releases in waves. It costs nothing.
func (b *Book[G]) IsEmpty() bool { return b.gates.Load() == 0 }

// Has returns whether a Gate that releases in waves has a target.
func (b *Book[G]) Has(key target.Key) bool {
	if b.IsEmpty() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, members := range b.members {
		if _, ok := members[key]; ok {
			return true
		}
	}
	return false
}

// Put notes what a target is for a Gate of a generation. One that has failed has failed until it is ready: that it is tried
// once more changes nothing. It returns whether that is new, and whether the target is.
func (b *Book[G]) Put(gate G, generation int64, key target.Key, m Member) (changed, added bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.members == nil {
		b.members = map[G]map[target.Key]entry{}
	}
	if b.members[gate] == nil {
		b.members[gate] = map[target.Key]entry{}
		b.gates.Add(1)
	}
	before, known := b.members[gate][key]
	if known && before.Phase == Failed && m.Phase.isTried() {
		m.Phase, m.Message = Failed, before.Message
	}
	b.members[gate][key] = entry{m, generation}
	same := before.Phase == m.Phase && before.Matches == m.Matches && before.generation == generation && before.Message == m.Message &&
		slices.Equal(before.Needs, m.Needs)
	return !known || !same, !known
}

// Keep forgets a target for all Gates but some, and returns those that had it.
func (b *Book[G]) Keep(key target.Key, gates ...G) (dropped []G) {
	if b.IsEmpty() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for gate, members := range b.members {
		if _, ok := members[key]; ok && !slices.Contains(gates, gate) {
			delete(members, key)
			dropped = append(dropped, gate)
		}
	}
	return dropped
}

// Close forgets a Gate.
func (b *Book[G]) Close(gate G) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.members[gate] != nil {
		delete(b.members, gate)
		b.gates.Add(-1)
	}
}

// Members returns the targets of a Gate, and whether all were looked at since it has its generation.
func (b *Book[G]) Members(gate G, generation int64) (map[target.Key]Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	members, current := make(map[target.Key]Member, len(b.members[gate])), true
	for key, e := range maps.All(b.members[gate]) {
		members[key] = e.Member
		current = current && e.generation == generation
	}
	return members, current
}
