package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// counting returns the exceptions of a Gate that count from an instant on, in their order of precedence: those that only close, and then
// the others, the newest first. Of two that were created in the same second, the first by name comes first.
func counting(g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) []*v1alpha1.GateException {
	var counts []*v1alpha1.GateException
	for _, e := range exceptions {
		if IsOf(g, e) && e.DeletionTimestamp.IsZero() && !e.ExpiredBy(now) && Missing(g, e) == 0 {
			counts = append(counts, e)
		}
	}
	slices.SortFunc(counts, func(a, b *v1alpha1.GateException) int {
		if a.OnlyCloses() != b.OnlyCloses() {
			if a.OnlyCloses() {
				return -1
			}
			return 1
		}
		if order := b.CreationTimestamp.Compare(a.CreationTimestamp.Time); order != 0 {
			return order
		}
		return strings.Compare(a.Name, b.Name)
	})
	return counts
}

// IsOf returns whether an exception is of a Gate. Exceptions of another namespace never
// are.
func IsOf(g *v1alpha1.Gate, e *v1alpha1.GateException) bool {
	return e.Namespace == g.Namespace && e.Spec.GateRef.Name == g.Name
}

func isValidAt(e *v1alpha1.GateException, now time.Time) bool {
	return !now.Before(e.Spec.ValidFrom.Time) && !e.ExpiredBy(now)
}

// applying returns the exceptions that apply at an instant: the valid ones up to the first that can open, because that one decides without
// the later ones. If it is broken and cannot close, the next one that may close applies, too.
func (p *peers) applying() (apply []*v1alpha1.GateException) {
	first := true // of those that can open
	for _, e := range p.counts {
		if !isValidAt(e, p.now) {
			continue
		}
		if first || timetable.MayClose(&e.Spec) {
			apply = append(apply, e)
		}
		if e.OnlyCloses() {
			continue
		}
		if first = false; !p.letsClose(e) {
			break
		}
	}
	return apply
}

// letsClose returns whether the close periods of older exceptions apply after this one, because it is broken and cannot close.
func (p *peers) letsClose(e *v1alpha1.GateException) bool {
	return !timetable.MayClose(&e.Spec) && (slices.Contains(timetable.Excess(p.counts), e) || len(p.timetable.ExceptionErrors(e)) > 0 || e.Spec.LeadTime != nil && slices.Contains(p.refused(), e.Name))
}

// nextEdge returns the next instant at which one of the exceptions begins or ends, zero if
// none does.
func nextEdge(exceptions []*v1alpha1.GateException, now time.Time) time.Time {
	next := time.Time{}
	for _, e := range exceptions {
		for _, at := range []time.Time{e.Spec.ValidFrom.Time, e.Spec.ValidUntil.Time} {
			if at.After(now) {
				next = schedule.Earlier(next, at)
			}
		}
	}
	return next
}

// peers are the exceptions of a Gate at an instant.
type peers struct {
	gate      *v1alpha1.Gate
	timetable *timetable.Timetable
	// notReady says why the exceptions change nothing, empty if they do.
	notReady string
	counts   []*v1alpha1.GateException
	// refused returns the names of the exceptions with a refused lead time.
	refused func() []string
	// leadErrors returns the errors of these leads, by the names of their exceptions.
	leadErrors func() map[string]field.ErrorList
	// apply are those that apply.
	apply []*v1alpha1.GateException
	now   time.Time
}

func (in *Snapshot) peers(now time.Time) *peers {
	p := &peers{gate: in.Gate, timetable: in.compile().Timetable, notReady: in.notReady(), counts: counting(in.Gate, in.Exceptions, now), now: now}
	p.leadErrors = sync.OnceValue(func() map[string]field.ErrorList { return in.RefusedLeads(now) })
	p.refused = func() []string { return slices.Collect(maps.Keys(p.leadErrors())) }
	p.apply = p.applying()
	return p
}

// recheck returns when the decision on an exception may change by itself: at its own edges, and at those of exceptions that overlap with it or
// that leave no room for it.
func (p *peers) recheck(e *v1alpha1.GateException) time.Time {
	related := []*v1alpha1.GateException{e}
	for i, other := range p.counts {
		if i >= len(p.counts)-v1alpha1.MaxEffectiveExceptions-1 || overlap(other, e) {
			related = append(related, other)
		}
	}
	return nextEdge(related, p.now)
}

// overlap returns whether two exceptions are both valid at some time.
func overlap(a, b *v1alpha1.GateException) bool {
	return a.Spec.ValidFrom.Before(&b.Spec.ValidUntil) && b.Spec.ValidFrom.Before(&a.Spec.ValidUntil)
}

// reason returns that of the condition Active of a valid exception.
func (p *peers) reason(e *v1alpha1.GateException) string {
	switch {
	case e.ExpiredBy(p.now) || !e.DeletionTimestamp.IsZero():
		return v1alpha1.ExpiredReason
	case p.gate == nil:
		return v1alpha1.GateNotFoundReason
	case p.notReady != "":
		return v1alpha1.GateNotReadyReason
	case Missing(p.gate, e) > 0:
		return v1alpha1.WaitingApprovalReason
	case !isValidAt(e, p.now):
		return v1alpha1.PendingReason
	case !slices.ContainsFunc(p.apply, func(a *v1alpha1.GateException) bool { return a.Name == e.Name }):
		return v1alpha1.OverlappedReason
	}
	return v1alpha1.InForceReason
}

// newer returns the exceptions that win over this one at some time, in their order of
// precedence.
func (p *peers) newer(e *v1alpha1.GateException) []*v1alpha1.GateException {
	if e.OnlyCloses() {
		return nil
	}
	own := slices.IndexFunc(p.counts, func(c *v1alpha1.GateException) bool { return c.Name == e.Name })
	return slices.DeleteFunc(slices.Clone(p.counts[:max(own, 0)]), func(newer *v1alpha1.GateException) bool {
		return newer.OnlyCloses() || !overlap(newer, e)
	})
}

// Overlapping returns the exceptions that win over this one at some time from an instant
// on, in their order of precedence.
func Overlapping(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) []*v1alpha1.GateException {
	return NewSnapshot(g, nil, exceptions...).peers(now).newer(e)
}

// tooMany says that an exception is broken because too many older ones of its Gate are not over. It is empty if that is not so.
func (p *peers) tooMany(e *v1alpha1.GateException, gate string) string {
	if !slices.ContainsFunc(timetable.Excess(p.counts), func(c *v1alpha1.GateException) bool { return c.Name == e.Name }) {
		return ""
	}
	return fmt.Sprintf("Exception is broken: %d other exceptions of gate '%s' are not over, and no more take effect. "+
		"From %s until %s it opens nothing, and everything that it could close is closed. Delete exceptions that are no longer needed",
		v1alpha1.MaxEffectiveExceptions, gate, format.Time(e.Spec.ValidFrom.Time), format.Time(e.Spec.ValidUntil.Time))
}

// ExceptionDecision is what a GateException is at an instant.
type ExceptionDecision struct {
	// Active is whether it applies, Expired whether it is over. Reason and Message say why or why not.
	Active, Expired bool
	Reason, Message string
	// Refused says which approvals do not count and why. Approve says how to approve the
	// present exception. Both are empty unless it waits for approval.
	Refused, Approve string
	// Overlapped says which newer exception wins over it, empty if none does.
	Overlapped string
	// TooMany says that it is broken because other exceptions of its Gate leave no room for it, empty if they do.
	TooMany string
	// Errors of an invalid spec.
	Errors field.ErrorList
	// Recheck is when this changes by itself, zero if it does not.
	Recheck time.Time
}

// DecideException returns the decision on an exception at an instant. The Gate is
// nil if it does not exist; exceptions are all that refer to it, this one included. All
// calendars are taken for broken.
func DecideException(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) ExceptionDecision {
	return NewSnapshot(g, nil, exceptions...).DecideException(e, now)
}

// DecideException returns the same as the function of that name, with the calendars of the Gate. The exception must be in the snapshot.
func (in *Snapshot) DecideException(e *v1alpha1.GateException, now time.Time) ExceptionDecision {
	g, p := in.Gate, &peers{now: now}
	if g != nil {
		p = in.peers(now)
	}
	d := ExceptionDecision{}
	d.Reason = p.reason(e)
	d.Active, d.Expired = d.Reason == v1alpha1.InForceReason, d.Reason == v1alpha1.ExpiredReason
	if !d.Expired {
		d.Recheck = p.recheck(e)
		d.Errors = timetable.ValidateException(e)
	}
	name := e.Namespace + "/" + e.Spec.GateRef.Name
	valid := fmt.Sprintf("from %s until %s", format.Time(e.Spec.ValidFrom.Time), format.Time(e.Spec.ValidUntil.Time))
	switch d.Reason {
	case v1alpha1.ExpiredReason:
		d.Message = "Exception expired at " + format.Time(e.Spec.ValidUntil.Time)
		if !e.ExpiredBy(now) {
			d.Message = "Exception is being deleted"
		}
		return d
	case v1alpha1.GateNotFoundReason:
		d.Message = fmt.Sprintf("Gate '%s' does not exist, the exception counts as soon as it does", name)
		return d
	case v1alpha1.GateNotReadyReason:
		d.Message = fmt.Sprintf("Gate '%s' %s, and no exception changes that", name, p.notReady)
		return d
	case v1alpha1.WaitingApprovalReason:
		d.Message, d.Refused, d.Approve = waiting(g, e), refusedApproval(e), howToApprove(e)
		return d
	case v1alpha1.PendingReason:
		d.Message = fmt.Sprintf("Exception applies to gate '%s' %s", name, valid)
	case v1alpha1.InForceReason:
		d.Message = fmt.Sprintf("Exception applies to gate '%s' until %s", name, format.Time(e.Spec.ValidUntil.Time))
	}
	d.Overlapped, d.TooMany = p.overlapped(e, name), p.tooMany(e, name)
	if d.TooMany == "" && e.Spec.LeadTime != nil {
		d.Errors = append(d.Errors, p.leadErrors()[e.Name]...)
	}
	switch {
	case d.Reason == v1alpha1.OverlappedReason:
		d.Message = d.Overlapped
	case d.TooMany != "":
		d.Reason, d.Message = v1alpha1.TooManyExceptionsReason, d.TooMany
	case len(d.Errors) > 0:
		d.Reason = v1alpha1.InvalidSpecReason
		d.Message = fmt.Sprintf("Exception is invalid: %s it opens nothing of gate '%s', and all that it could close is closed: %s", valid, name, d.Errors.ToAggregate())
	}
	return d
}

// overlapped returns a message about a newer exception that replaces this one or keeps it from opening, preferably one that does so now. It
// is empty if there is none.
func (p *peers) overlapped(e *v1alpha1.GateException, gate string) string {
	newer := p.newer(e)
	if len(newer) == 0 {
		return ""
	}
	first := newer[max(0, slices.IndexFunc(newer, func(n *v1alpha1.GateException) bool { return isValidAt(n, p.now) }))]
	layout := "Exception '%s' of gate '%s' is newer and wins from %s until %s"
	if timetable.MayClose(&e.Spec) && p.letsClose(first) {
		layout = "Exception '%s' of gate '%s' is newer and broken: from %s until %s this exception closes the gate, but does not open it"
	}
	return fmt.Sprintf(layout, first.Name, gate, format.Time(first.Spec.ValidFrom.Time), format.Time(first.Spec.ValidUntil.Time))
}

// notReady says why the exceptions of a Gate change nothing at present. It is empty if
// they do.
func (in *Snapshot) notReady() string {
	switch g := in.Gate; {
	case !g.DeletionTimestamp.IsZero():
		return "is being deleted and holds nothing any more"
	case g.Spec.Suspend:
		return "is suspended and stays as it is"
	case len(in.Errors()) > 0:
		return "has an invalid spec and opens nothing"
	}
	return ""
}
