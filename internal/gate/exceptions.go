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

// counting returns the exceptions of a Gate that have enough approvals, have not ended and are not being deleted, in order of precedence.
// Exceptions that only close come first. In both groups, newer exceptions come first, and exceptions created in the same second are ordered
// by name.
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

// IsOf returns whether an exception refers to a Gate, which must be in the same namespace.
func IsOf(g *v1alpha1.Gate, e *v1alpha1.GateException) bool {
	return e.Namespace == g.Namespace && e.Spec.GateRef.Name == g.Name
}

func isValidAt(e *v1alpha1.GateException, now time.Time) bool {
	return !now.Before(e.Spec.ValidFrom.Time) && !e.ExpiredBy(now)
}

// applying returns the exceptions that apply to the Gate at p.now: the valid exceptions up to and including the first that can open. If
// that exception is broken and cannot close, the next one also applies if it may close. All later exceptions are ignored.
func (p *peers) applying() (apply []*v1alpha1.GateException) {
	first := true // no exception that can open has been seen yet
	for _, e := range p.counts {
		if !timetable.AppliesToGate(e, timetable.Excess(p.counts)) || !isValidAt(e, p.now) {
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

// letsClose returns whether close periods of older exceptions still apply, because this exception is broken and cannot close.
func (p *peers) letsClose(e *v1alpha1.GateException) bool {
	return !timetable.MayClose(&e.Spec) && (slices.Contains(timetable.Excess(p.counts), e) || len(p.timetable.ExceptionErrors(e)) > 0 || e.Spec.LeadTime != nil && slices.Contains(p.refused(), e.Name))
}

// nextEdge returns the next instant at which an exception begins or ends, zero if there is none.
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

// peers holds the exceptions of a Gate at an instant. The decision on one exception depends on the others.
type peers struct {
	gate      *v1alpha1.Gate
	timetable *timetable.Timetable
	// notReady is the reason why the exceptions have no effect, empty if they have one.
	notReady string
	counts   []*v1alpha1.GateException
	// refused returns the names of the exceptions with a refused lead time.
	refused func() []string
	// leadErrors returns the errors of the refused leads by exception name.
	leadErrors func() map[string]field.ErrorList
	// apply lists the exceptions that apply, see applying.
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

// recheck returns when the decision on an exception may change, zero for never. That is the next start or end of the exception, of an
// overlapping exception, or of an exception that counts toward the limit.
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

// reason returns the reason of the condition Active of an exception, as if its spec were valid.
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
	case !e.HasTargets() && !slices.ContainsFunc(p.apply, func(a *v1alpha1.GateException) bool { return a.Name == e.Name }):
		return v1alpha1.OverlappedReason
	}
	return v1alpha1.InForceReason
}

// newer returns the exceptions that override this one at some time, in their order of precedence.
func (p *peers) newer(e *v1alpha1.GateException) []*v1alpha1.GateException {
	if e.OnlyCloses() || e.HasTargets() {
		return nil
	}
	own := slices.IndexFunc(p.counts, func(c *v1alpha1.GateException) bool { return c.Name == e.Name })
	return slices.DeleteFunc(slices.Clone(p.counts[:max(own, 0)]), func(newer *v1alpha1.GateException) bool {
		return newer.OnlyCloses() || newer.HasTargets() || !overlap(newer, e)
	})
}

// Overlapping returns the exceptions that override e at some time and have not ended, in their order of precedence.
func Overlapping(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) []*v1alpha1.GateException {
	return NewSnapshot(g, nil, exceptions...).peers(now).newer(e)
}

// tooMany returns the message for an exception that is broken because its Gate has too many, empty if the exception is within the limit.
func (p *peers) tooMany(e *v1alpha1.GateException, gate string) string {
	if !slices.ContainsFunc(timetable.Excess(p.counts), func(c *v1alpha1.GateException) bool { return c.Name == e.Name }) {
		return ""
	}
	return fmt.Sprintf(msgTooManyExceptions+
		msgBrokenEffect,
		v1alpha1.MaxEffectiveExceptions, gate, format.Time(e.Spec.ValidFrom.Time), format.Time(e.Spec.ValidUntil.Time))
}

// ExceptionDecision is the state of a GateException at an instant.
type ExceptionDecision struct {
	// Active is true if the exception applies. Expired is true if it has ended or is being deleted. Reason and Message explain the state.
	Active, Expired bool
	Reason, Message string
	// Refused is the reason why the approval in the annotation does not count, empty if it counts or there is none. Approve is the command that approves
	// the current version. Both are empty unless the exception waits for approval.
	Refused, Approve string
	// Overlapped is a message about the newer exception that overrides this one, empty if there is none.
	Overlapped string
	// TooMany is the message for an exception that is broken because its Gate has too many, empty if the exception is within the limit.
	TooMany string
	// Errors lists the errors of an invalid spec.
	Errors field.ErrorList
	// Recheck is the time when the decision may change without a write, zero if it will not.
	Recheck time.Time
}

// DecideException returns the decision on an exception at an instant. The Gate is nil if it does not exist. exceptions contains all
// exceptions that refer to the Gate, including this one. All calendars count as broken.
func DecideException(e *v1alpha1.GateException, g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) ExceptionDecision {
	return NewSnapshot(g, nil, exceptions...).DecideException(e, now)
}

// DecideException is like the function DecideException, with the calendars of the Gate. The exception must be in the snapshot.
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
	valid := fmt.Sprintf(msgFromUntil, format.Time(e.Spec.ValidFrom.Time), format.Time(e.Spec.ValidUntil.Time))
	switch d.Reason {
	case v1alpha1.ExpiredReason:
		d.Message = msgExceptionExpired + format.Time(e.Spec.ValidUntil.Time)
		if !e.ExpiredBy(now) {
			d.Message = msgExceptionDeleted
		}
		return d
	case v1alpha1.GateNotFoundReason:
		d.Message = fmt.Sprintf(msgGateMissing, name)
		return d
	case v1alpha1.GateNotReadyReason:
		d.Message = fmt.Sprintf(msgNoEffect, name, p.notReady)
		return d
	case v1alpha1.WaitingApprovalReason:
		d.Message, d.Refused, d.Approve = waiting(g, e), refusedApproval(e), howToApprove(e)
		return d
	case v1alpha1.PendingReason:
		d.Message = fmt.Sprintf(msgExceptionAppliesWhile, onlyPart(e), name, valid)
	case v1alpha1.InForceReason:
		d.Message = fmt.Sprintf(msgExceptionApplies, onlyPart(e), name, format.Time(e.Spec.ValidUntil.Time))
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
		d.Message = fmt.Sprintf(msgExceptionInvalid, valid, name, d.Errors.ToAggregate())
	}
	return d
}

// onlyPart returns the part of a message about the targets of an exception, to be followed by the Gate. It is empty if the exception
// has no targets.
func onlyPart(e *v1alpha1.GateException) string {
	if !e.HasTargets() {
		return ""
	}
	return fmt.Sprintf(msgOnly, Only(e.Spec.Targets))
}

// overlapped returns a message about a newer exception that overrides this one or its openings, empty if there is none. If there are
// several, the message names the first one that is valid now, or the first one if none is.
func (p *peers) overlapped(e *v1alpha1.GateException, gate string) string {
	newer := p.newer(e)
	if len(newer) == 0 {
		return ""
	}
	first := newer[max(0, slices.IndexFunc(newer, func(n *v1alpha1.GateException) bool { return isValidAt(n, p.now) }))]
	layout := msgOverridden
	if timetable.MayClose(&e.Spec) && p.letsClose(first) {
		layout = msgOverriddenBroken
	}
	return fmt.Sprintf(layout, first.Name, gate, format.Time(first.Spec.ValidFrom.Time), format.Time(first.Spec.ValidUntil.Time))
}

// notReady returns why the exceptions of the Gate have no effect now, empty if they have one.
func (in *Snapshot) notReady() string {
	switch g := in.Gate; {
	case !g.DeletionTimestamp.IsZero():
		return msgGateDeleted
	case g.Spec.Suspend:
		return msgGateSuspended
	case len(in.Errors()) > 0:
		return msgGateInvalid
	}
	return ""
}
