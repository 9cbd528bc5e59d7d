// Package waves decides which targets of a Gate may be released if they are released in waves. The next wave starts after all waves before
// it have been ready for their soak times. Except for Rollouts, the package is pure.
package waves

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Phase is the phase of a target for a Gate that releases it.
type Phase uint8

const (
	// Held means that the Gate holds the target.
	Held Phase = iota
	// Blocked means that another Gate holds the target.
	Blocked
	// Progressing means that the target is released and not ready yet.
	Progressing
	// Rechecking means that the target was ready after its release and is being reconciled again, as at each resync interval. It counts as
	// ready, because with many targets, some are always in this phase.
	Rechecking
	// Ready means that the target is released and ready.
	Ready
	// Failed means that the target is released and has failed. It stays failed until it is ready.
	Failed
	// Skipped means that the Gate does not release the target, for example because a user has suspended it.
	Skipped
)

// isTried returns whether Flux is still reconciling the target, so that the result is unknown.
func (p Phase) isTried() bool { return p == Progressing || p == Rechecking }

// Member is a target of a Gate.
type Member struct {
	// Matches is a bit mask of the waves that match the target.
	Matches uint16
	Phase   Phase
	// Needs lists the targets that must be ready before this one.
	Needs []target.Key
	// Message is the reason why the target is in this phase, empty if unknown.
	Message string
}

// wave returns the last wave that matches a member. rest is the wave of members that no wave matches, after all others.
func (m Member) wave(rest int) int {
	if m.Matches == 0 {
		return rest
	}
	return bits.Len16(m.Matches) - 1
}

// Progress is the progress of a release that is stored in the status.
type Progress struct {
	// Done is the number of finished waves, and the index of the current wave.
	Done int
	// ReadySince is when all targets of the current wave and earlier waves became ready, zero if some are not ready.
	ReadySince time.Time
	// Excused is the number of waves that the release no longer waits for.
	Excused int
	// Accepted is true if a user has requested to proceed in spite of faults of the waves.
	Accepted bool
	// Failed lists the targets that have failed and have not been ready since, in the order in which they were reported.
	Failed []target.Key
}

// FaultKind is the kind of a Fault.
type FaultKind uint8

const (
	// Overlap means that two waves match a target.
	Overlap FaultKind = iota + 1
	// Empty means that a wave matches no target.
	Empty
	// Cycle means that targets depend on each other in a cycle.
	Cycle
)

// Fault is a mistake in the waves of a Gate.
type Fault struct {
	Kind FaultKind
	// Waves lists the two waves that overlap, or the empty wave.
	Waves []int
	// Targets lists the target that two waves match, or the targets in the cycle.
	Targets []target.Key
}

// Waiting is a target that a release waits for.
type Waiting struct {
	Key target.Key
	Member
}

// Decision is the decision on a release.
type Decision struct {
	Progress
	// Over is true if all waves are finished.
	Over bool
	// May contains the held targets that may be released now.
	May map[target.Key]bool
	// Fault and Stops are the reasons why the release has stopped. Stops lists the failed targets in the order in which they
	// were reported.
	Fault *Fault
	Stops []Waiting
	// Waiting lists the targets that the next wave waits for, failed ones first.
	Waiting []Waiting
	// Sizes lists the number of targets in each wave. The last number is for targets that no wave matches. Ready is the number of targets in
	// the current wave that are ready or skipped.
	Sizes []int
	Ready int
	// Again is when to decide again even if nothing has changed, zero for never.
	Again time.Time
}

// Release is a release in waves.
type Release struct {
	// Soaks lists the soak time of each wave.
	Soaks []time.Duration
	// Members holds all targets of the Gate.
	Members map[target.Key]Member
	// Settled is true if all members are up to date. Until then, no wave ends.
	Settled bool
	// keys lists the keys of the members, in order.
	keys []target.Key
}

// rest returns the wave of the targets that no wave matches.
func (r *Release) rest() int { return len(r.Soaks) }

// IsNeeded returns whether there are targets to release.
func (r *Release) IsNeeded() bool {
	for _, m := range r.Members {
		if m.Phase == Held || m.Phase == Blocked {
			return true
		}
	}
	return false
}

// Decide decides how a release continues. proceed is true if a user has requested to proceed now, in spite of the current fault or with the
// next wave.
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

// sort sorts the members, so that reports are the same in each reconciliation.
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

// advance starts waves one after the other, as long as all earlier ones are ready.
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

// evaluateWave records which targets of the current wave and earlier waves are not ready. It returns whether all are ready. Targets of
// excused waves count as ready.
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

// rank returns the index of a key in keys, or len(keys) if it is missing.
func rank(keys []target.Key, key target.Key) int {
	if i := slices.Index(keys, key); i >= 0 {
		return i
	}
	return len(keys)
}

// waitsAfter returns whether a target of a later wave still has to be released.
func (r *Release) waitsAfter(wave int) bool {
	for _, m := range r.Members {
		if (m.Phase == Held || m.Phase == Blocked) && m.wave(r.rest()) > wave {
			return true
		}
	}
	return false
}

// call records which held targets may be released: those of the current and of earlier waves whose dependencies are ready.
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

// lacks returns whether a target that another one depends on is not ready. Targets of later waves do not count, because Flux waits for
// them. Targets of excused waves count only while they are held.
func (r *Release) lacks(need target.Key, d *Decision) bool {
	m, ok := r.Members[need]
	wave := m.wave(r.rest())
	if !ok || wave > d.Done || m.Phase == Ready || m.Phase == Rechecking || m.Phase == Skipped {
		return false
	}
	return wave >= d.Excused || m.Phase == Held
}
