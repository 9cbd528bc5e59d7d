package controllers

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/jitter"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tally"
)

// gateMemory is what the controller remembers of Gates. Nothing depends on it after a restart. The zero value is
// ready for use.
type gateMemory struct {
	mu    sync.Mutex
	gates map[types.NamespacedName]*remembered
}

// remembered is what is remembered of one Gate.
type remembered struct {
	uid types.UID
	// resync is when to look at all targets again although nothing has changed.
	resync time.Time
	// decided is the Gate with the last decision that matters to targets, nil once the cache has it.
	decided *v1alpha1.Gate
	// written is when the status was last written while targets were pending.
	written time.Time
	// changed says that the Gate has another state, until all targets are as that wants them.
	changed bool
	// empty are the references that match nothing, and when that was looked at.
	empty emptiness
	// origin is of what it was last looked at whether the Gate governs what applies it.
	origin string
	// looked is what the Gate was when all its targets were looked at. Only with waves.
	looked lookedAt
	// due is when the Gate was due to have the state that it has, until all targets are as it wants them.
	due *v1alpha1.Transition
}

// see takes note of a Gate. It returns the one that had its name before, if that is another.
func (m *gateMemory) see(g *v1alpha1.Gate, now time.Time) (before tally.Gate, replaced bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(g)
	known := m.gates[key]
	if known != nil && known.uid == g.UID {
		return tally.Gate{}, false
	}
	if m.gates == nil {
		m.gates = map[types.NamespacedName]*remembered{}
	}
	m.gates[key] = &remembered{uid: g.UID, resync: now.Add(jitter.JitteredIntervalDuration(g.GetInterval()))}
	if known == nil {
		return tally.Gate{}, false
	}
	return tally.Gate{NamespacedName: key, UID: known.uid}, true
}

// forget returns what Gate had a name.
func (m *gateMemory) forget(key types.NamespacedName) (tally.Gate, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known, ok := m.gates[key]
	delete(m.gates, key)
	if !ok {
		return tally.Gate{}, false
	}
	return tally.Gate{NamespacedName: key, UID: known.uid}, true
}

// with calls a function with what is remembered of a Gate that was seen.
func (m *gateMemory) with(g *v1alpha1.Gate, do func(*remembered)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.gates[client.ObjectKeyFromObject(g)]; known != nil {
		do(known)
	}
}

// woke takes note that all targets of a Gate are looked at because it has changed.
func (m *gateMemory) woke(g *v1alpha1.Gate, now time.Time) {
	m.with(g, func(r *remembered) {
		r.written, r.resync = now, now.Add(jitter.JitteredIntervalDuration(g.GetInterval()))
	})
}

// newest returns a Gate of the cache, or the version of it with the last decision of this process if the cache is behind: targets must
// be ruled neither by a close nor by an open that has been replaced.
func (m *gateMemory) newest(cached *v1alpha1.Gate) (newest *v1alpha1.Gate) {
	newest = cached
	m.with(cached, func(r *remembered) {
		switch {
		case r.uid != cached.UID || r.decided == nil:
		case older(cached.ResourceVersion, r.decided.ResourceVersion):
			newest = r.decided
		default:
			r.decided = nil
		}
	})
	return newest
}

// isDue returns whether all targets of a Gate are to be looked at again. If they are, the next time is its interval
// later.
func (m *gateMemory) isDue(g *v1alpha1.Gate, asked bool, now time.Time) bool {
	due := false
	m.with(g, func(r *remembered) {
		interval := g.GetInterval()
		if due = asked || !now.Before(r.resync) || now.Before(r.resync.Add(-2*interval)); due { // the clock may have been set back
			r.resync = now.Add(jitter.JitteredIntervalDuration(interval))
		}
	})
	return due
}

// resyncOf returns when all targets of a Gate are looked at again.
func (m *gateMemory) resyncOf(g *v1alpha1.Gate) (at time.Time) {
	m.with(g, func(r *remembered) { at = r.resync })
	return at
}

// lookedAt is what a Gate was when all its targets were looked at.
type lookedAt struct {
	generation int64
	opened     time.Time
}

// isLookedAt returns whether all targets of an open Gate were looked at once since it has opened, with the spec that it has. They are
// now if they are settled.
func (m *gateMemory) isLookedAt(g *v1alpha1.Gate, settled bool) (is bool) {
	now := lookedAt{g.Generation, g.Status.LastTransition.At.Time}
	m.with(g, func(r *remembered) {
		if settled {
			r.looked = now
		}
		is = r.looked.generation == now.generation && r.looked.opened.Equal(now.opened)
	})
	return is
}
