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
func (r *Rollouts) IsEmpty() bool { return r.gates.Load() == 0 }

// Has returns whether a target belongs to a Gate that releases in waves.
func (r *Rollouts) Has(key target.Key) bool {
	if r.IsEmpty() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rollout := range r.rollouts {
		if _, ok := rollout.members[key]; ok {
			return true
		}
	}
	return false
}

// Put stores the state of a target for a generation of a Gate. A failed target stays failed until it is ready, even if Flux retries it.
// changed is true if the state has changed, and added if the target is new.
func (r *Rollouts) Put(gate summary.Gate, generation int64, key target.Key, m Member) (changed, added bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rollouts == nil {
		r.rollouts = map[types.UID]*rollout{}
	}
	if r.rollouts[gate.UID] == nil {
		r.rollouts[gate.UID] = &rollout{gate, map[target.Key]entry{}}
		r.gates.Add(1)
	}
	members := r.rollouts[gate.UID].members
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
func (r *Rollouts) Keep(key target.Key, gates ...summary.Gate) (dropped []summary.Gate) {
	if r.IsEmpty() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rollout := range r.rollouts {
		if _, ok := rollout.members[key]; ok && !slices.Contains(gates, rollout.gate) {
			delete(rollout.members, key)
			dropped = append(dropped, rollout.gate)
		}
	}
	return dropped
}

// Forget removes a Gate.
func (r *Rollouts) Forget(gate types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rollouts[gate] != nil {
		delete(r.rollouts, gate)
		r.gates.Add(-1)
	}
}

// Members returns the targets of a Gate. It returns false if some of them have not been evaluated for this generation. A Gate that is not
// known has no targets.
func (r *Rollouts) Members(gate types.UID, generation int64) (map[target.Key]Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	current := true
	if r.rollouts[gate] == nil {
		return nil, current
	}
	members := make(map[target.Key]Member, len(r.rollouts[gate].members))
	for key, e := range r.rollouts[gate].members {
		members[key] = e.Member
		current = current && e.generation == generation
	}
	return members, current
}
