package gate

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// stampsRetry is how long to wait before checking again whether the API server stamps identities.
const stampsRetry = time.Second

// Observed holds the inputs of a Resolution that the controller reads only when they are needed.
type Observed struct {
	// Stamps is whether the API server stamps requesters and approvers.
	Stamps ledger.Stamps
	// Dependencies lists the observed dependencies of the Gate, nil if they have not been read. Cached is true if any of them was read from
	// the cache.
	Dependencies []v1alpha1.DependencyStatus
	Cached       bool
	// TwoClocks is true if a Gate must also be open by the API server's clock before it opens.
	TwoClocks bool
	// Server is the time of the API server, nil if it has not been read yet.
	Server *ServerTime
	// Behind is a lower bound of how far the controller's clock is behind the API server's. A Gate closes by the faster
	// clock.
	Behind time.Duration
}

// Need is the input that a Resolution lacks.
type Need uint8

// Missing inputs of a Resolution.
const (
	// NeedsNothing means that the Resolution is final.
	NeedsNothing Need = iota
	// NeedsDependencies means that the Gate is open if its dependencies are ready.
	NeedsDependencies
	// NeedsCurrentDependencies means that the Gate would open, but that some dependencies were read from the cache.
	NeedsCurrentDependencies
	// NeedsServerTime means that the Gate would open.
	NeedsServerTime
)

// Resolution is the decision on a Gate after its new requests were handled, with the consequences of the decision.
type Resolution struct {
	Decision
	// Needs is the input to read before calling Resolve again. Unless it is NeedsNothing, the other fields are preliminary.
	Needs Need
	// Closing is the time when the Gate closes even if its dependencies are ready, zero if it does not close. It is set only with NeedsDependencies.
	Closing time.Time
	// At is the instant of the decision.
	At time.Time
	// Handled lists the requests and approvals that were handled.
	Handled []ledger.Request
	// Rechecks lists the times of the next decisions according to the controller's clock.
	Rechecks []time.Time
	// Unread is true if the dependencies were not needed, because the Gate is closed without them.
	Unread bool
	// Err is the reason why the Gate could not open, nil if nothing prevented it.
	Err error
	// Changed is true if the state of the Gate differs from the one in its status.
	Changed bool
	// Proceeds is true if there is a new request to proceed with the release.
	Proceeds bool
	// AffectsTargets is true if the targets must be reconciled.
	AffectsTargets bool
	// IsNew is true if the status must be written.
	IsNew bool

	snapshot *Snapshot
	observed Observed
	// gate has the handled requests and the dependencies in its status. decided has the complete decision in its status.
	gate, decided *v1alpha1.Gate
}

// Resolve handles the new requests of the Gate and decides, without changing the Gate. It needs the dependencies only for a Gate that is
// open if they are ready, and the time of the API server only for a Gate that would open.
func (in *Snapshot) Resolve(o Observed, now time.Time) *Resolution {
	r := &Resolution{snapshot: in, observed: o, At: now}
	r.gate, r.Handled = r.handle(in.Gate, now)
	if len(in.Gate.Spec.DependsOn) > 0 && o.Dependencies == nil {
		if ready := in.WithGate(r.gate).DecideIfReady(now); ready.State == v1alpha1.StateOpened || opensMore(ready.Overlays, nil) {
			r.Needs = NeedsDependencies
			if ready.Next != nil {
				r.Closing = ready.Next.At.Time
			}
			return r
		}
		r.Unread = true
	}
	r.decide(r.decisionOn(r.gate, now))
	if r.opens() {
		switch {
		case o.Cached:
			r.Needs = NeedsCurrentDependencies
			return r
		case o.TwoClocks && o.Server == nil:
			r.Needs = NeedsServerTime
			return r
		case o.Server != nil:
			r.confirm(o.Server)
		}
	}
	if o.Behind > 0 && r.Err == nil {
		r.closeByServer(o.Behind)
	}
	r.record()
	return r
}

// handle returns a copy of the Gate with its requests handled at an instant and the observed dependencies in its status.
func (r *Resolution) handle(g *v1alpha1.Gate, at time.Time) (*v1alpha1.Gate, []ledger.Request) {
	then := *g
	handled := ApplyRequests(&then, r.observed.Stamps, at)
	if r.observed.Dependencies != nil || len(g.Spec.DependsOn) == 0 {
		then.Status.Dependencies = r.observed.Dependencies
	}
	return &then, handled
}

// decisionOn returns the decision on a copy of the Gate with a different status.
func (r *Resolution) decisionOn(g *v1alpha1.Gate, at time.Time) Decision {
	d := r.snapshot.WithGate(g).Decide(at)
	if len(r.snapshot.Calendars) > 0 { // calendars are expanded only that far ahead
		d.Recheck = schedule.Earlier(d.Recheck, at.Add(timetable.MaxCalendarAge))
	}
	return d
}

func (r *Resolution) decide(d Decision) {
	r.Decision, r.Rechecks = d, []time.Time{d.Recheck}
	if d.Next != nil {
		r.Rechecks = append(r.Rechecks, d.Next.At.Time)
	}
	if r.observed.Stamps == ledger.StampsUnknown {
		r.Rechecks = append(r.Rechecks, r.At.Add(stampsRetry))
	}
}

// opens returns whether the decision opens the Gate or some of its targets, or keeps the Gate open although its spec, its requests or the
// time have changed. The latter matters, because a close may have ended by only one of the two clocks.
func (r *Resolution) opens() bool {
	before := r.snapshot.Gate
	opensSome := opensMore(r.Overlays, nil)
	if opensMore(r.Overlays, openAt(before.Status.Overlays, r.At)) || opensSome && len(r.Handled) > 0 ||
		(opensSome || r.State == v1alpha1.StateOpened) && len(missingCloses(r.Overlays, before.Status.Overlays)) > 0 {
		return true
	}
	return r.State == v1alpha1.StateOpened && (!conditions.IsTrue(before, v1alpha1.OpenedCondition) || missedTransition(before, r.State, r.At) ||
		len(r.Handled) > 0 || before.Generation != before.Status.ObservedGeneration ||
		conditions.GetReason(before, meta.ReadyCondition) == v1alpha1.TimeUnknownReason)
}

// missedTransition returns whether the state of a Gate changed and changed back since the last decision.
func missedTransition(before *v1alpha1.Gate, state v1alpha1.State, now time.Time) bool {
	due := before.Status.NextTransition
	return due != nil && !due.At.After(now) && due.State != state
}

// confirm keeps the current state of a Gate that would open by the controller's clock, but not by the API server's: the controller's clock
// may be ahead, and another replica would decide differently. It also keeps the state if the API server's time is unknown.
func (r *Resolution) confirm(t *ServerTime) {
	before := r.snapshot.Gate
	if r.Err = t.Unknown(); r.Err != nil {
		if r.State == v1alpha1.StateOpened && !conditions.IsTrue(before, v1alpha1.OpenedCondition) {
			r.Decision = r.Withheld()
		}
		onlyClosing(r.Overlays, openAt(before.Status.Overlays, r.At))
		r.Overlays = append(r.Overlays, missingCloses(r.Overlays, before.Status.Overlays)...)
		return
	}
	then, handled := r.handle(before, t.reached(r.At))
	at, d := t.Reported, r.decisionOn(then, t.Reported)
	for d.State == v1alpha1.StateOpened && d.Next != nil && !d.Next.At.After(r.At) {
		at = d.Next.At.Time // by the API server's clock, this opening has not ended yet
		d = r.decisionOn(then, at)
	}
	if d.State == v1alpha1.StateOpened || r.State == v1alpha1.StateClosed {
		kept := missingCloses(r.Overlays, d.Overlays)
		if onlyClosing(r.Overlays, d.Overlays) || len(kept) > 0 {
			r.Overlays = append(r.Overlays, kept...)
			r.Rechecks = append(r.Rechecks, t.RequestedAt.Add(t.Until(r.At)))
		}
		return
	}
	rechecks := r.Rechecks
	onlyClosing(d.Overlays, r.Overlays)
	r.decide(d)
	for _, recheck := range r.Rechecks {
		if recheck.After(at) {
			rechecks = append(rechecks, t.RequestedAt.Add(t.Until(recheck)))
		}
	}
	r.gate, r.Handled, r.At, r.Rechecks = then, handled, at, rechecks
	if t.Ahead().Abs() >= reportedSkew || strings.HasSuffix(conditions.GetMessage(before, v1alpha1.OpenedCondition), ClocksDiffer) {
		r.Message += clocksDiffer
	}
}

// closeByServer closes a Gate that is due to close by the API server's clock, which is ahead. It never opens a Gate.
func (r *Resolution) closeByServer(ahead time.Duration) {
	if r.State == v1alpha1.StateOpened || len(r.Overlays) > 0 {
		at := r.At.Add(ahead)
		then, handled := r.handle(r.gate, at) // r.gate, because new requests may have ended by the API server's clock
		d := r.decisionOn(then, at)
		onlyClosing(d.Overlays, r.Overlays)
		r.Overlays = slices.Concat(d.Overlays, missingCloses(d.Overlays, r.Overlays))
		d.Overlays = r.Overlays
		switch {
		case r.State == v1alpha1.StateClosed:
		case d.State == v1alpha1.StateClosed:
			r.decide(d)
			r.gate, r.Handled, r.At = then, append(slices.Clip(r.Handled), handled...), at
		case r.Next != nil && r.Next.At.After(at): // earlier than by the controller's clock
			r.Rechecks = append(r.Rechecks, r.Next.At.Add(-ahead))
		}
		for i := range r.Overlays {
			if until := r.Overlays[i].Until; until != nil {
				r.Rechecks = append(r.Rechecks, until.Add(-ahead))
			}
		}
	}
	if ahead >= reportedSkew && !strings.HasSuffix(r.Message, ClocksDiffer) {
		r.Message += clocksDiffer
	}
}

// ApplyRequests handles the new requests and approvals in the annotations of a Gate, and stores the result in its status. It returns the
// result of ledger.Ledger.Apply.
func ApplyRequests(g *v1alpha1.Gate, stamps ledger.Stamps, now time.Time) []ledger.Request {
	l := ledger.Read(g)
	outcomes := l.Apply(stamps, now)
	s := l.Status()
	g.Status.Requests, g.Status.Memory.HandledRequests, g.Status.Memory.LastHandledLine = s.Requests, s.Handled, s.LastHandledLine
	return outcomes
}
