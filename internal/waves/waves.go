// Package waves says which targets of a Gate may be released now, if they are released in waves: the next wave begins once
// all of those before are ready and have been so for their soak. It is pure, apart from a book in memory.
package waves

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Phase is what a target is from the view of a Gate that releases it.
type Phase uint8

const (
	// Held means that the Gate has the target wait.
	Held Phase = iota
	// Blocked means that another Gate holds the target.
	Blocked
	// Progressing means that the target is released and not ready yet.
	Progressing
	// Rechecking means that the target was ready since its release and is being applied once more, as at each of its
	// intervals. It remains what it was: of many there are always some.
	Rechecking
	// Ready means that the target is released and ready.
	Ready
	// Failed means that the target is released and has failed. It has failed until it is ready.
	Failed
	// Skipped means that the Gate does not release the target: somebody else has suspended it, for example.
	Skipped
)

// isTried returns whether Flux is at a target, so that nobody knows yet what comes of it.
func (p Phase) isTried() bool { return p == Progressing || p == Rechecking }

// Member is a target of a Gate.
type Member struct {
	// Matches has the bit of each wave that matches the target.
	Matches uint16
	Phase   Phase
	// Needs are the targets that must be ready before it.
	Needs []target.Key
	// Message says why it is in its phase, if that is known.
	Message string
}

// wave returns the wave of a member, which is the last one that matches. A member that no wave matches is in the one after all others.
func (m Member) wave(rest int) int {
	if m.Matches == 0 {
		return rest
	}
	return bits.Len16(m.Matches) - 1
}

// Progress is how far a release is. It outlives the process.
type Progress struct {
	// Done is how many waves are done. The wave after them is the current one.
	Done int
	// ReadySince is when all targets of the current wave and those before were ready, zero if they are not.
	ReadySince time.Time
	// Excused is how many waves nobody waits for any more.
	Excused int
	// Accepted says that a person goes on despite faults of the waves.
	Accepted bool
	// Failed are targets that had failed, those first that were told first. They have failed until they are ready.
	Failed []target.Key
}

// FaultKind is what is wrong with the waves of a Gate.
type FaultKind uint8

const (
	// Overlap means that two waves match a target.
	Overlap FaultKind = iota + 1
	// Empty means that a wave matches no target.
	Empty
	// Circle means that targets need each other.
	Circle
)

// Fault is what is wrong with the waves of a Gate.
type Fault struct {
	Kind FaultKind
	// Waves are the two that overlap, or the one that matches nothing.
	Waves []int
	// Targets are the one that two waves match, or those that need each other.
	Targets []target.Key
}

// Waiting is a target for which a release waits.
type Waiting struct {
	Key target.Key
	Member
}

// Decision is what is to be done.
type Decision struct {
	Progress
	// Over says that all waves are done.
	Over bool
	// May has the held targets that may be released now.
	May map[target.Key]bool
	// Fault is what keeps the release from going on, and Stops are the targets that do, those first that have been told.
	Fault *Fault
	Stops []Waiting
	// Waiting are the targets for which the next wave waits, those that have failed first.
	Waiting []Waiting
	// Sizes has how many targets each wave has, the last one being those that no wave matches, and Ready how many of the
	// current wave are ready or need not be.
	Sizes []int
	Ready int
	// Again is when to decide again although nothing has changed, zero for never.
	Again time.Time
}

// Release is a release by waves.
type Release struct {
	// Soaks are those of the waves.
	Soaks []time.Duration
	// Members are all targets of the Gate.
	Members map[target.Key]Member
	// Settled says that all members are known as they are. Until then no wave ends.
	Settled bool
	// keys of the members, in order.
	keys []target.Key
}

// rest is the wave of the targets that no wave matches.
func (r *Release) rest() int { return len(r.Soaks) }

// IsNeeded returns whether there is anything to release.
func (r *Release) IsNeeded() bool {
	for _, m := range r.Members {
		if m.Phase == Held || m.Phase == Blocked {
			return true
		}
	}
	return false
}

// Decide decides how a release goes on that has come as far as a progress, at an instant. Proceed says that a person wants
// it to go on now: with the fault that it has, or with the next wave.
func (r *Release) Decide(p Progress, proceed bool, now time.Time) Decision {
	r.sort()
	d := Decision{Progress: p, Sizes: make([]int, r.rest()+1)}
	for _, m := range r.Members {
		d.Sizes[m.wave(r.rest())]++
	}
	fault := r.fault(d.Sizes)
	if proceed {
		switch {
		case fault != nil && !p.Accepted:
			d.Accepted = true
		case d.Done <= r.rest():
			d.Done, d.Excused, d.ReadySince = d.Done+1, d.Done+1, time.Time{}
		}
	}
	if fault != nil && !d.Accepted && d.Done <= r.rest() {
		d.Fault, d.ReadySince = fault, time.Time{}
	}
	r.advance(&d, now)
	d.Over = d.Done > r.rest()
	if d.Fault == nil && len(d.Stops) == 0 {
		r.call(&d)
	}
	return d
}

// sort brings the members in order: what is told does not change from look to look.
func (r *Release) sort() {
	r.keys = r.keys[:0]
	for key := range r.Members {
		r.keys = append(r.keys, key)
	}
	slices.SortFunc(r.keys, compare)
}

func compare(a, b target.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Group, b.Group))
}

// advance begins one wave after the other, as far as all before are ready.
func (r *Release) advance(d *Decision, now time.Time) {
	for d.Done <= r.rest() {
		ready := r.evaluateWave(d)
		if len(d.Stops) > 0 || d.Fault != nil || !ready || !r.Settled {
			return
		}
		if d.ReadySince.IsZero() || d.ReadySince.After(now) { // the clock may have been set back
			d.ReadySince = now
		}
		if d.Done < r.rest() && d.Sizes[d.Done] > 0 && r.waitsAfter(d.Done) {
			if at := d.ReadySince.Add(r.Soaks[d.Done]); at.After(now) {
				d.Again = at
				return
			}
		}
		d.Done, d.ReadySince = d.Done+1, time.Time{}
	}
	d.Stops, d.Waiting, d.Ready = nil, nil, 0
}

// evaluateWave notes which targets of the current wave, and of those before it, are not ready. It returns whether all are.
func (r *Release) evaluateWave(d *Decision) bool {
	d.Stops, d.Waiting, d.Ready = nil, nil, 0
	failed := d.Failed
	for _, key := range r.keys {
		m := r.Members[key]
		wave := m.wave(r.rest())
		if wave > d.Done {
			continue
		}
		if m.Phase.isTried() && slices.Contains(failed, key) {
			m.Phase = Failed // it has not been ready since
		}
		isReady := m.Phase == Ready || m.Phase == Rechecking || m.Phase == Skipped
		if isReady && wave == d.Done {
			d.Ready++
		}
		switch {
		case isReady || wave < d.Excused:
			continue
		case m.Phase == Failed:
			d.Stops = append(d.Stops, Waiting{key, m})
		default:
			d.Waiting = append(d.Waiting, Waiting{key, m})
		}
		d.ReadySince = time.Time{}
	}
	slices.SortStableFunc(d.Stops, func(a, b Waiting) int { return cmp.Compare(rank(failed, a.Key), rank(failed, b.Key)) })
	d.Failed = nil
	for _, waits := range d.Stops {
		d.Failed = append(d.Failed, waits.Key)
	}
	slices.SortStableFunc(d.Waiting, func(a, b Waiting) int { return cmp.Compare(b.Phase, a.Phase) })
	d.Waiting = append(slices.Clone(d.Stops), d.Waiting...)
	return len(d.Waiting) == 0
}

// rank is the place of a target among some, after all if it is none of them.
func rank(keys []target.Key, key target.Key) int {
	if i := slices.Index(keys, key); i >= 0 {
		return i
	}
	return len(keys)
}

// waitsAfter returns whether a target of a later wave is to be released.
func (r *Release) waitsAfter(wave int) bool {
	for _, m := range r.Members {
		if (m.Phase == Held || m.Phase == Blocked) && m.wave(r.rest()) > wave {
			return true
		}
	}
	return false
}

// call notes which held targets may be released: those of the current wave and of those before it that need nothing which
// is not ready.
func (r *Release) call(d *Decision) {
	d.May = map[target.Key]bool{}
	for key, m := range r.Members {
		wave := m.wave(r.rest())
		if m.Phase != Held || wave > d.Done {
			continue
		}
		d.May[key] = d.Accepted || wave < d.Excused || !slices.ContainsFunc(m.Needs, func(need target.Key) bool { return r.lacks(need, d) })
	}
}

// lacks returns whether a target that another one needs is not ready. One of a later wave does not count: Flux waits for it.
func (r *Release) lacks(need target.Key, d *Decision) bool {
	m, ok := r.Members[need]
	wave := m.wave(r.rest())
	if !ok || wave > d.Done || m.Phase == Ready || m.Phase == Rechecking || m.Phase == Skipped {
		return false
	}
	return wave >= d.Excused || m.Phase == Held
}
