package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
)

// ErrUnhandled is returned if the Gate has an unhandled manual request, which another request would overwrite.
var ErrUnhandled = errors.New(msgUnhandled)

// ErrAhead is returned for an open request if the Gate has handled a request whose time is more than MaxSkew ahead: the clocks differ too
// much to order the two requests.
var ErrAhead = errors.New(msgAhead)

// ErrTooManyLimited is returned for a request with targets if the Gate has as many such requests as it can have, or if the names of the
// targets are too long.
var ErrTooManyLimited = fmt.Errorf(msgTooManyLimited, v1alpha1.MaxLimitedRequests)

// WriteRequest writes the request of a GateReceiver to the annotations of a Gate. The time of the request is now, or just after the times
// of previous webhooks, so that their order does not depend on the clocks of replicas. It does not write a close request if an unhandled
// close request by a webhook lasts longer. It returns ErrUnhandled, ErrAhead, ErrClosedByPeople or
// ErrTooManyLimited.
func WriteRequest(g *v1alpha1.Gate, r Request, now time.Time) error {
	l := Read(g)
	r.Targets = l.normalize(r.Targets)
	if len(r.Targets) > 0 && At(g, now).countLimited(now) >= v1alpha1.MaxLimitedRequests {
		return ErrTooManyLimited
	}
	if r.Action == v1alpha1.RequestOpen {
		if err := l.closedByPeople(&r, now); err != nil {
			return err
		}
	}
	at, err := l.webhookTime(r.Action, now)
	if err != nil {
		return err
	}
	r.At = at
	a := annotationsOf(r.Action)
	if before := l.unhandledIn(a); before != nil {
		if done, err := l.covered(before, &r, now); done || err != nil {
			return err
		}
	}
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	value := FormatRequest(at, r.Window, r.Targets...)
	if len(value) > maxValue {
		return ErrTooManyLimited
	}
	g.Annotations[a.requestedAt], g.Annotations[a.received] = value, value
	g.Annotations[a.requestedBy] = r.By
	g.Annotations[a.reason] = r.Reason
	if r.Reason == "" {
		delete(g.Annotations, a.reason)
	}
	return nil
}

// closedByPeople returns ErrClosedByPeople, with the close request, if a manual close request that concerns an open request is in force or
// unhandled.
func (l *Ledger) closedByPeople(r *Request, now time.Time) error {
	refused := func(r Request) error { return fmt.Errorf("%w: %s", ErrClosedByPeople, r) }
	for _, closed := range At(l.gate, now).current() {
		if closed.Action == v1alpha1.RequestClose && closed.Source != v1alpha1.SourceWebhook && closed.lasts(now) && concerns(closed.Targets, r.Targets) {
			return refused(newRequest(closed.AcceptedRequest))
		}
	}
	for _, asked := range l.pending(v1alpha1.RequestClose, now) {
		if asked.source == v1alpha1.SourceWebhook {
			continue
		}
		if end, planned, ok := l.valid(asked, now); ok && !planned && concerns(asked.Targets, r.Targets) && (end.IsZero() || now.Before(end)) {
			return refused(*asked)
		}
	}
	return nil
}

// valid parses a new request and sets its time and window. end is the time when the request ends, zero for never. planned is true if
// its time is ahead by more than MaxSkew. ok is false if the value will be refused.
func (l *Ledger) valid(r *Request, now time.Time) (end time.Time, planned, ok bool) {
	if err := l.parse(r, now); err != nil {
		return time.Time{}, false, false
	}
	return r.End(l.limit), r.At.After(now.Add(MaxSkew)), true
}

// webhookTime returns the time for a webhook request that arrives now. It differs from the last handled time, and is later than the times
// of the last request that began and of unhandled webhooks. For an open request, it is also later than the times of the close requests in
// force.
func (l *Ledger) webhookTime(action v1alpha1.RequestAction, now time.Time) (time.Time, error) {
	at := now.UTC().Truncate(time.Microsecond)
	after := func(last time.Time) {
		if !at.After(last) {
			at = last.Add(time.Microsecond)
		}
	}
	if m := l.findRecord(action); m != nil {
		if last, ok := parseInstant(m.LastHandled); ok && at.Equal(last) {
			after(last)
		}
		if m.RequestedAt != nil {
			if action == v1alpha1.RequestOpen && m.RequestedAt.After(now.Add(MaxSkew)) {
				return time.Time{}, ErrAhead
			}
			after(m.RequestedAt.Time)
		}
	}
	if action == v1alpha1.RequestOpen {
		for _, closed := range slices.Concat(l.closes, l.limited) {
			if closed.RequestedAt.After(now.Add(MaxSkew)) {
				return time.Time{}, ErrAhead
			}
			after(closed.RequestedAt.Time)
		}
	}
	for _, r := range append(l.pending(v1alpha1.RequestClose, now), l.pending(v1alpha1.RequestOpen, now)...) {
		if last, ok := parseInstant(r.Value); ok && r.source == v1alpha1.SourceWebhook {
			after(last)
		}
	}
	return at, nil
}

// covered returns true if a new close request need not be written, because the unhandled request before is a close request by a webhook that
// lasts longer, for at least the same targets. It returns ErrUnhandled if the new request must not overwrite before, for example because
// that is a manual request.
func (l *Ledger) covered(before, r *Request, now time.Time) (bool, error) {
	until, planned, ok := l.valid(before, now)
	if !ok {
		return false, nil
	}
	opensAfter := l.unhandledIn(annotationsOf(v1alpha1.RequestOpen)) != nil
	longer := compareEnds(until, r.End(l.limit)) > 0
	webhook := before.source == v1alpha1.SourceWebhook
	switch {
	case webhook && before.Action == v1alpha1.RequestOpen && (r.Targets == nil) != (before.Targets == nil):
		return false, ErrUnhandled // neither includes the other
	case webhook && includes(r.Targets, before.Targets) && (before.Action == v1alpha1.RequestOpen || !longer):
		return false, nil
	case webhook && longer && includes(before.Targets, r.Targets) && !planned && !opensAfter: // a manual request does not suffice, because Flux may remove it
		return true, nil
	}
	return false, ErrUnhandled
}

// IsUnhandled returns whether the annotation of a Gate for an action has an unhandled request.
func IsUnhandled(g *v1alpha1.Gate, action v1alpha1.RequestAction) bool {
	return Read(g).unhandledIn(annotationsOf(action)) != nil
}

// Requested returns the value of the annotation that requests an action.
func Requested(g *v1alpha1.Gate, action v1alpha1.RequestAction) string {
	return g.Annotations[annotationsOf(action).requestedAt]
}

// parseInstant returns the time in the value of a request. It returns false if the value is invalid.
func parseInstant(value string) (time.Time, bool) {
	v, err := annotations.Close.Parse(value) // this form also accepts the values of open requests
	return v.At.Truncate(time.Microsecond), err == nil
}
