// Package ledger implements the requests of a Gate: open and close requests that are in force, planned or waiting for approval, their
// approvals, and the records of handled annotations. It is pure: package gate stores the values that it returns.
package ledger

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Ledger holds the requests of a Gate that are in force, planned, or waiting for approval. Read loads it, Apply adds the new requests
// in the annotations, and Status returns the fields to store. A Ledger is not safe for concurrent use, and never changes its Gate.
type Ledger struct {
	gate *v1alpha1.Gate
	// handled holds the records of handled annotations. lastLine is the number of the last handled line.
	handled  []v1alpha1.HandledRequest
	lastLine int64
	// changed is true if Apply changed the requests in the status. applied is the instant of Apply.
	changed bool
	applied time.Time
	// limit is spec.window, nil if it is not set.
	limit *v1alpha1.Duration
	// open and closes are the requests in force, or the last ones if none is in force. At most one of the two is set. A close request is
	// dropped if another one covers it, see covers.
	open   *inForce
	closes []*inForce
	// begun contains open, closes, and the requests that they ended. An ended request may still be in force by the clock of another replica.
	begun []*inForce
	// limited lists the requests with targets that have begun, oldest first.
	limited []*inForce
	// planned lists the planned requests, ordered by time.
	planned []v1alpha1.AcceptedRequest
	// waiting lists the open requests that are due but lack approvals.
	waiting []v1alpha1.AcceptedRequest
	// required is the number of approvals that an open request needs.
	required int
	// voided lists the requests that were dropped because they lacked approvals, each with the reason.
	voided []Request
}

// Read returns the ledger in the status of a Gate.
func Read(g *v1alpha1.Gate) *Ledger {
	l := &Ledger{
		gate: g, limit: g.Spec.Window, required: g.RequiredApprovals(),
		handled: slices.Clone(g.Status.Memory.HandledRequests), lastLine: g.Status.Memory.LastHandledLine,
	}
	for _, r := range g.Status.Requests {
		switch {
		case r.State == v1alpha1.RequestPlanned:
			l.planned = append(l.planned, r)
		case r.State == v1alpha1.RequestWaiting:
			l.waiting = append(l.waiting, r)
		case r.Action == v1alpha1.RequestOpen && r.State != v1alpha1.RequestInForce && r.State != v1alpha1.RequestEnded:
			// fail closed: another version has written this state
		case len(r.Targets) > 0:
			l.limited = append(l.limited, l.started(r))
		case r.EndedAt != nil:
			l.addBegun(r)
		case r.Action != v1alpha1.RequestOpen:
			l.closes = append(l.closes, l.addBegun(r))
		default:
			l.open = l.addBegun(r)
		}
	}
	for _, s := range slices.Concat(l.begun, l.limited) {
		s.begun = true
	}
	l.sort()
	return l
}

// At returns the stored ledger of a Gate after the planned requests that are due at an instant have begun.
func At(g *v1alpha1.Gate, at time.Time) *Ledger {
	l := Read(g)
	l.advance(at)
	return l
}

// Ahead returns the stored ledger of a Gate as if all planned requests had begun.
func Ahead(g *v1alpha1.Gate) *Ledger {
	l := Read(g)
	if n := len(l.planned); n > 0 {
		l.advance(l.planned[n-1].RequestedAt.Time)
	}
	return l
}

// sort orders the planned requests by time. If requests have the same time, the close request comes last, so that it wins.
func (l *Ledger) sort() {
	slices.SortStableFunc(l.planned, func(a, b v1alpha1.AcceptedRequest) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt.Time), -strings.Compare(string(a.Action), string(b.Action)))
	})
}

// Apply handles the new requests and approvals in the annotations, and begins the requests that are due or have enough approvals. It
// returns the requests that were accepted, approved or refused, including earlier requests that are refused only now. Each value is handled
// once. Removing an annotation has no effect.
func (l *Ledger) Apply(s Stamps, now time.Time) []Request {
	begun, refused := l.advance(now)
	for _, r := range begun {
		recordBegin(l.handledRecord(r.Action), &r)
	}
	p := &intake{Ledger: l, stamps: s, now: now, outcomes: refused}
	p.lines()
	p.annotations()
	outcomes := slices.Concat(p.outcomes, l.approve(s, now))
	l.changed = l.keepEnds(now) || l.isStale(now) || len(begun) > 0 || p.last != nil || len(outcomes) > 0
	l.applied = now
	return outcomes
}

// Status holds the fields of a ledger that are stored in the status of a Gate.
type Status struct {
	Requests        []v1alpha1.AcceptedRequest
	Handled         []v1alpha1.HandledRequest
	LastHandledLine int64
}

// Status returns the fields to store after Apply.
func (l *Ledger) Status() Status {
	s := Status{l.gate.Status.Requests, l.handled, l.lastLine}
	if l.changed {
		s.Requests = l.save(l.applied)
	}
	return s
}
