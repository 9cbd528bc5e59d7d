package ledger

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// A request with targets is in force in addition to the requests for the whole Gate, and takes precedence over them for its targets. It
// does not end them. Among requests with targets, the latest one takes over its targets from the others. Only a close request leaves
// other close requests in force. So a target is either in one open request, or only in close requests.

// normalize removes the namespace of the Gate from targets, removes duplicates, and sorts the
// targets.
func (l *Ledger) normalize(targets []v1alpha1.RequestTarget) (all []v1alpha1.RequestTarget) {
	for _, t := range targets {
		if t.Namespace == l.gate.Namespace {
			t.Namespace = ""
		}
		if !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.RequestTarget) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// concerns returns whether a request for the targets in by affects a request for targets. No targets means the whole Gate. A request
// with targets does not affect a request for the whole Gate.
func concerns(by, targets []v1alpha1.RequestTarget) bool {
	return len(by) == 0 || slices.ContainsFunc(targets, func(t v1alpha1.RequestTarget) bool { return slices.Contains(by, t) })
}

// includes returns whether others contains all targets. No targets means the whole Gate.
func includes(others, targets []v1alpha1.RequestTarget) bool {
	return len(others) == 0 || len(targets) > 0 && len(without(targets, others)) == 0
}

// without returns the targets that are not among others.
func without(targets, others []v1alpha1.RequestTarget) []v1alpha1.RequestTarget {
	return slices.DeleteFunc(slices.Clone(targets), func(t v1alpha1.RequestTarget) bool { return slices.Contains(others, t) })
}

// FormatTargets returns the targets of a request as text.
func FormatTargets(targets []v1alpha1.RequestTarget) string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}

// current returns the requests in force or the last ones for the whole Gate, and the requests with
// targets.
func (l *Ledger) current() []*inForce {
	all := slices.Concat(l.closes, l.limited)
	if l.open != nil {
		all = append(all, l.open)
	}
	return all
}

// countLimited returns the number of requests with targets that are in force, planned or waiting at an instant.
func (l *Ledger) countLimited(now time.Time) (n int) {
	for _, s := range l.limited {
		if s.EndedAt == nil && s.lasts(now) {
			n++
		}
	}
	for _, r := range slices.Concat(l.planned, l.waiting) {
		n += min(len(r.Targets), 1)
	}
	return n
}

// takeOver changes the requests with targets when another request begins. A request for the whole Gate ends requests for the opposite
// action, except close requests that it must not end. A request with targets takes over its targets from the other requests. A close
// request drops open requests that lack approvals.
func (l *Ledger) takeOver(r *v1alpha1.AcceptedRequest, at time.Time) {
	if r.Action == v1alpha1.RequestClose {
		l.voidUnapproved(r)
	}
	for _, s := range l.limited {
		opposite := s.Action != r.Action
		switch {
		case !s.lasts(at) || !concerns(r.Targets, s.Targets):
		case s.Action == v1alpha1.RequestClose && (!opposite || mayEnd(r, &s.AcceptedRequest) != nil):
		case opposite && r.Action == v1alpha1.RequestClose && l.isOver(r, s, at):
		case !opposite && (len(r.Targets) == 0 || Withdraws(r.Window)):
		case includes(r.Targets, s.Targets):
			l.ends([]*inForce{s}, r)
		default:
			s.Targets = without(s.Targets, r.Targets)
		}
	}
}

// beginLimited puts a request with targets in force. A request that only withdraws others is not kept.
func (l *Ledger) beginLimited(r v1alpha1.AcceptedRequest) {
	if Withdraws(r.Window) {
		return
	}
	started := l.started(r)
	l.limited = slices.DeleteFunc(l.limited, func(other *inForce) bool {
		return other.Action == r.Action && r.Action == v1alpha1.RequestClose && slices.Equal(other.Targets, r.Targets) && started.covers(other)
	})
	l.limited = append(l.limited, started)
}

// withdrawable returns whether a request that withdraws others would end a request that is in force at an
// instant.
func (l *Ledger) withdrawable(r *v1alpha1.AcceptedRequest, now time.Time) bool {
	return slices.ContainsFunc(l.current(), func(s *inForce) bool {
		return s.Action != r.Action && s.EndedAt == nil && s.lasts(now) && concerns(r.Targets, s.Targets)
	})
}

// saveLimited returns the requests with targets to store in one state. Ended requests are kept while they may be in force by the clock
// of another replica.
func (l *Ledger) saveLimited(state v1alpha1.RequestState, now time.Time) (all []v1alpha1.AcceptedRequest) {
	for _, s := range l.limited {
		s.State = s.stateAt(now)
		if s.State == state && (state == v1alpha1.RequestInForce || s.lasts(now.Add(-MaxSkew))) {
			all = append(all, s.AcceptedRequest)
		}
	}
	return all[max(0, len(all)-v1alpha1.MaxLimitedRequests):]
}

// A Limited is a request with targets that is in force or planned.
type Limited struct {
	Request
	// Period is the time in which it is in force, in whole seconds.
	Period schedule.Period
	// From and Until are the bounds of the period. A zero Until means never.
	From, Until time.Time
}

// Limited returns the requests with targets that are in force at an instant or planned, like Periods for the other requests. An open
// request ends when a planned close request for the whole Gate begins.
func (l *Ledger) Limited(now time.Time) (all []Limited) {
	var closes time.Time
	for _, r := range l.planned {
		if r.Action == v1alpha1.RequestClose && r.Targets == nil {
			closes = schedule.Earlier(closes, r.RequestedAt.Time)
		}
	}
	requests := slices.Clone(l.limited)
	for _, r := range l.planned {
		if len(r.Targets) > 0 && l.lacks(&r) == 0 && !Withdraws(r.Window) {
			requests = append(requests, l.started(r))
		}
	}
	for _, s := range requests {
		from, until := s.RequestedAt.Time, s.end
		if s.Action == v1alpha1.RequestOpen {
			from = schedule.RoundUp(from)
			if closes.After(s.RequestedAt.Time) {
				until = schedule.Earlier(until, closes)
			}
		} else {
			until = schedule.RoundUp(until)
			if s.begun {
				from = schedule.Earlier(from, now.Truncate(time.Second))
			}
		}
		if until.IsZero() || until.After(now) && until.After(from) {
			all = append(all, Limited{Request: newRequest(s.AcceptedRequest), Period: schedule.Between("", from, until), From: from, Until: until})
		}
	}
	return all
}
