package waves

import (
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Rollouts holds the targets of the Gates that release in waves, by Gate. The zero value is ready for use. Rollouts is safe for concurrent
// use. Its content is lost on a restart, after which all targets are reconciled once.
type Rollouts struct {
	// gates is the number of rollouts. It is atomic because it is read for each event of a target.
	gates atomic.Int64

	mu       sync.Mutex
	rollouts map[types.UID]*rollout
}

// rollout holds the targets of one Gate.
type rollout struct {
	gate    summary.Gate
	members map[target.Key]entry
}

// entry is a member, with the generation of the Gate that it was evaluated for.
type entry struct {
	Member
	generation int64
}

// IsEmpty returns whether no Gate releases in waves. It takes no lock.
func (b *Rollouts) IsEmpty() bool { return b.gates.Load() == 0 }

// Has returns whether a target belongs to a Gate that releases in waves.
func (b *Rollouts) Has(key target.Key) bool {
	if b.IsEmpty() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, page := range b.rollouts {
		if _, ok := page.members[key]; ok {
			return true
		}
	}
	return false
}

// Put stores the state of a target for a generation of a Gate. A failed target stays failed until it is ready, even if Flux retries it.
// changed is true if the state has changed, and added if the target is new.
func (b *Rollouts) Put(gate summary.Gate, generation int64, key target.Key, m Member) (changed, added bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rollouts == nil {
		b.rollouts = map[types.UID]*rollout{}
	}
	if b.rollouts[gate.UID] == nil {
		b.rollouts[gate.UID] = &rollout{gate, map[target.Key]entry{}}
		b.gates.Add(1)
	}
	members := b.rollouts[gate.UID].members
	before, known := members[key]
	if known && before.Phase == Failed && m.Phase.isTried() {
		m.Phase, m.Message = Failed, before.Message
	}
	members[key] = entry{m, generation}
	same := before.Phase == m.Phase && before.Matches == m.Matches && before.generation == generation && before.Message == m.Message &&
		slices.Equal(before.Needs, m.Needs)
	return !known || !same, !known
}

// Keep removes a target from all Gates except the given ones. It returns the Gates that it has removed the target from.
func (b *Rollouts) Keep(key target.Key, gates ...summary.Gate) (dropped []summary.Gate) {
	if b.IsEmpty() {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, page := range b.rollouts {
		if _, ok := page.members[key]; ok && !slices.Contains(gates, page.gate) {
			delete(page.members, key)
			dropped = append(dropped, page.gate)
		}
	}
	return dropped
}

// Forget removes a Gate.
func (b *Rollouts) Forget(gate types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rollouts[gate] != nil {
		delete(b.rollouts, gate)
		b.gates.Add(-1)
	}
}

// Members returns the targets of a Gate. It returns false if some of them have not been evaluated for this generation. A Gate that is not
// known has no targets.
func (b *Rollouts) Members(gate types.UID, generation int64) (map[target.Key]Member, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current := true
	if b.rollouts[gate] == nil {
		return nil, current
	}
	members := make(map[target.Key]Member, len(b.rollouts[gate].members))
	for key, e := range b.rollouts[gate].members {
		members[key] = e.Member
		current = current && e.generation == generation
	}
	return members, current
}
