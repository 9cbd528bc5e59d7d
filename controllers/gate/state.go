package gate

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/pkg/runtime/jitter"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
)

// State is the state of Gates in memory. It is lost on restart. The zero value is ready for use.
type State struct {
	mu    sync.Mutex
	gates map[types.UID]*gateState
}

// gateState is the state of one Gate.
type gateState struct {
	// resync is the time when the next resync of all targets is due.
	resync time.Time
	// decided is the Gate with the last decision that affects targets, nil once the cache has it.
	decided *v1alpha1.Gate
	// written is the time when the status was last written while targets were pending.
	written time.Time
	// changed is set by a state change, and cleared once all targets have reached the new state.
	changed bool
	// empty is the last check for references that match nothing.
	empty referenceCheck
	// applierKey identifies the inputs of the last check of appliers.
	applierKey string
	// reconciled is the version of the Gate for which all targets were last reconciled. It is only set with waves.
	reconciled openedVersion
	// due is the scheduled transition to the current state, nil once all targets have reached that state.
	due *v1alpha1.Transition
}

// add adds a Gate that is reconciled.
func (m *State) add(g *v1alpha1.Gate, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gates == nil {
		m.gates = map[types.UID]*gateState{}
	}
	if m.gates[g.UID] == nil {
		m.gates[g.UID] = &gateState{resync: resyncAfter(g, now)}
	}
}

// Forget evicts a Gate.
func (m *State) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gates, uid)
}

// lock locks mu and returns the state of a Gate. For an unknown Gate, it returns a temporary state.
func (m *State) lock(g *v1alpha1.Gate) *gateState {
	m.mu.Lock()
	if known := m.gates[g.UID]; known != nil {
		return known
	}
	return &gateState{}
}

func resyncAfter(g *v1alpha1.Gate, now time.Time) time.Time {
	return now.Add(jitter.JitteredIntervalDuration(g.GetInterval()))
}

// StartDecision records that a decision that affects targets is about to be written. It postpones the resync, because all targets are
// enqueued anyway.
func (m *State) StartDecision(g *v1alpha1.Gate, now time.Time) {
	known := m.lock(g)
	defer m.mu.Unlock()
	known.written, known.resync = now, resyncAfter(g, now)
}

// recordDecision records the written version of a Gate with a decision that affects targets.
func (m *State) recordDecision(written *v1alpha1.Gate) {
	known := m.lock(written)
	defer m.mu.Unlock()
	known.decided = written
}

// Newest returns the cached Gate, or the version with the last decision of this process if the cache is behind. An older decision must
// never be applied to targets.
func (m *State) Newest(cached *v1alpha1.Gate) *v1alpha1.Gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.gates[cached.UID]
	if known == nil || known.decided == nil {
		return cached
	}
	if ownwrites.IsOlder(cached.ResourceVersion, known.decided.ResourceVersion) {
		return known.decided
	}
	known.decided = nil
	return cached
}

// isDue returns whether a resync of all targets of a Gate is due or requested. If so, it schedules the next resync.
func (m *State) isDue(g *v1alpha1.Gate, requested bool, now time.Time) bool {
	known := m.lock(g)
	defer m.mu.Unlock()
	if !requested && now.Before(known.resync) && !now.Before(known.resync.Add(-2*g.GetInterval())) { // the clock may have been set back
		return false
	}
	known.resync = resyncAfter(g, now)
	return true
}

// NextResync returns when the next resync of all targets of a Gate is due.
func (m *State) NextResync(g *v1alpha1.Gate) time.Time {
	known := m.lock(g)
	defer m.mu.Unlock()
	return known.resync
}

// mayWrite returns when the progress of the targets of a Gate may be written, zero for now. interval is the minimum time between two
// writes.
func (m *State) mayWrite(g *v1alpha1.Gate, isSettled bool, interval time.Duration, now time.Time) time.Time {
	known := m.lock(g)
	defer m.mu.Unlock()
	since := now.Sub(known.written)
	switch {
	case isSettled:
		known.written = time.Time{}
	case since >= 0 && since < interval:
		return known.written.Add(interval)
	default:
		known.written = now
	}
	return time.Time{}
}

// recordDue records the scheduled transition to the next state of a Gate.
func (m *State) recordDue(g *v1alpha1.Gate, due *v1alpha1.Transition) {
	known := m.lock(g)
	defer m.mu.Unlock()
	known.due = due
}

// recordChange records that a Gate has changed its state.
func (m *State) recordChange(g *v1alpha1.Gate) {
	known := m.lock(g)
	defer m.mu.Unlock()
	known.changed = true
}

// takeChange returns whether a Gate has changed its state since the last call, and the scheduled transition that caused the change, nil
// if there was none. Call it when all targets have reached that state.
func (m *State) takeChange(g *v1alpha1.Gate) (changed bool, due *v1alpha1.Transition) {
	known := m.lock(g)
	defer m.mu.Unlock()
	changed, due = known.changed, known.due
	known.changed, known.due = false, nil
	return changed, due
}

// recordFindings records the findings about a Gate.
func (m *State) recordFindings(g *v1alpha1.Gate, found *findings) {
	known := m.lock(g)
	defer m.mu.Unlock()
	known.empty, known.applierKey = found.empty, found.applierKey
}

// lastFindings returns the last findings about a Gate: the check of references, the key of the check of appliers, and the time of the
// next resync.
func (m *State) lastFindings(g *v1alpha1.Gate) (last referenceCheck, origin string, resync time.Time) {
	known := m.lock(g)
	defer m.mu.Unlock()
	return known.empty, known.applierKey, known.resync
}

// openedVersion is the generation of an open Gate and the time at which it opened.
type openedVersion struct {
	generation int64
	opened     time.Time
}

// isReconciled returns whether all targets of an open Gate have been reconciled since it opened with its current spec. settled is true if
// all of them are reconciled now.
func (m *State) isReconciled(g *v1alpha1.Gate, settled bool) bool {
	known := m.lock(g)
	defer m.mu.Unlock()
	now := openedVersion{g.Generation, g.Status.LastTransition.At.Time}
	if settled {
		known.reconciled = now
	}
	return known.reconciled.generation == now.generation && known.reconciled.opened.Equal(now.opened)
}
