package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
)

// ErrUnhandled is returned for a Gate with a request by hand that the controller has not
// seen yet. Writing another one now would lose it.
var ErrUnhandled = errors.New("has a request that is still to be taken note of")

// ErrAhead is returned for a Gate that has handled a request later than now. The clocks
// differ by more than MaxSkew, and nothing opens early.
var ErrAhead = errors.New("has handled a request of a time that is still to come")

// WriteRequest puts the request of a GateReceiver into the annotations of a Gate. Its time
// is now, or just after that of other webhooks: the order must not depend on whose clock
// is ahead. It writes nothing if a webhook already asks the Gate to close for longer. It
// returns ErrUnhandled, ErrAhead, or ErrClosedByPeople.
func WriteRequest(g *v1alpha1.Gate, r Request, now time.Time) error {
	l := Read(g)
	if r.Action == v1alpha1.RequestOpen {
		if err := l.closedByPeople(now); err != nil {
			return err
		}
	}
	at, err := l.timeOfWebhook(r.Action, now)
	if err != nil {
		return err
	}
	r.At = at
	a := annotationsOf(r.Action)
	if before := l.unhandledIn(a); before != nil {
		if done, err := l.covered(before, r.End(l.limit), now); done || err != nil {
			return err
		}
	}
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	value := FormatRequest(at, r.Window)
	g.Annotations[a.requestedAt], g.Annotations[a.received] = value, value
	g.Annotations[a.requestedBy] = r.By
	g.Annotations[a.reason] = r.Reason
	if r.Reason == "" {
		delete(g.Annotations, a.reason)
	}
	return nil
}

// closedByPeople returns ErrClosedByPeople, with the person, if somebody has closed a Gate
// by hand, or has asked to.
func (l *Ledger) closedByPeople(now time.Time) error {
	refused := func(r Request) error { return fmt.Errorf("%w: %s", ErrClosedByPeople, r) }
	for _, closed := range At(l.gate, now).closes {
		if closed.Source != v1alpha1.SourceWebhook && closed.lasts(now) {
			return refused(requestOf(closed.AcceptedRequest))
		}
	}
	for _, asked := range l.pending(v1alpha1.RequestClose, now) {
		if asked.source == v1alpha1.SourceWebhook {
			continue
		}
		if end, planned, ok := l.valid(asked, now); ok && !planned && (end.IsZero() || now.Before(end)) {
			return refused(*asked)
		}
	}
	return nil
}

// valid fills in the time and the window of a new request. It returns when the request
// ends, zero for never, and whether it is planned. ok is false if it will be refused.
func (l *Ledger) valid(r *Request, now time.Time) (end time.Time, planned, ok bool) {
	memory := l.recordOf(r.Action)
	if memory == nil {
		memory = &v1alpha1.HandledRequest{Action: r.Action}
	}
	if err := r.parse(memory, now); err != nil {
		return time.Time{}, false, false
	}
	return r.End(l.limit), r.At.After(now.Add(MaxSkew)), true
}

// timeOfWebhook returns the time for a webhook request that comes now. It differs from
// that of any value handled before, and is later than that of a webhook for the opposite.
func (l *Ledger) timeOfWebhook(action v1alpha1.RequestAction, now time.Time) (time.Time, error) {
	at := now.UTC().Truncate(time.Microsecond)
	after := func(last time.Time) {
		if !at.After(last) {
			at = last.Add(time.Microsecond)
		}
	}
	if m := l.recordOf(action); m != nil {
		if last, ok := instantOf(m.LastHandled); ok && at.Equal(last) {
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
		for _, closed := range l.closes {
			if closed.RequestedAt.After(now.Add(MaxSkew)) {
				return time.Time{}, ErrAhead
			}
			after(closed.RequestedAt.Time)
		}
	}
	for _, r := range append(l.pending(v1alpha1.RequestClose, now), l.pending(v1alpha1.RequestOpen, now)...) {
		if last, ok := instantOf(r.Value); ok && r.source == v1alpha1.SourceWebhook {
			after(last)
		}
	}
	return at, nil
}

// covered returns whether a new close of a webhook lasts longer than one that ends at an
// instant, so that this one need not be written. It returns ErrUnhandled if a new request
// must not replace the old one either: a request by a person is never lost.
func (l *Ledger) covered(before *Request, end, now time.Time) (bool, error) {
	until, planned, ok := l.valid(before, now)
	if !ok {
		return false, nil
	}
	opensAfter := l.unhandledIn(annotationsOf(v1alpha1.RequestOpen)) != nil
	longer := compareEnds(until, end) > 0
	webhook := before.source == v1alpha1.SourceWebhook
	switch {
	case webhook && (before.Action == v1alpha1.RequestOpen || !longer):
		return false, nil
	case webhook && !planned && !opensAfter: // Flux may remove what a person has asked
		return true, nil
	}
	return false, ErrUnhandled
}

// IsUnhandled returns whether the annotation of a Gate for an action has a request that the controller has not handled.
func IsUnhandled(g *v1alpha1.Gate, action v1alpha1.RequestAction) bool {
	return Read(g).unhandledIn(annotationsOf(action)) != nil
}

// Requested returns the value of the annotation that requests an action.
func Requested(g *v1alpha1.Gate, action v1alpha1.RequestAction) string {
	return g.Annotations[annotationsOf(action).requestedAt]
}

// instantOf returns the time in the value of a request.
func instantOf(value string) (time.Time, bool) {
	v, err := annotations.Close.Parse(value) // which accepts that of an open, too
	return v.At.Truncate(time.Microsecond), err == nil
}
