package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// advance begins the planned requests that are due, and returns them. refused lists the requests that could not begin, with the reasons.
func (l *Ledger) advance(now time.Time) (begun []v1alpha1.AcceptedRequest, refused []Request) {
	for len(l.planned) > 0 && !l.planned[0].RequestedAt.After(now) {
		r := l.planned[0]
		l.planned, r.State = l.planned[1:], v1alpha1.RequestInForce
		if err := l.beginOrWait(r, r.RequestedAt.Time); err != nil {
			void := newRequest(r)
			void.Err = err
			refused = append(refused, void)
		}
		begun = append(begun, r)
	}
	return begun, refused
}

// begin puts a request in force at an instant. A close request joins those in force. An open request ends all of them, or is refused.
func (l *Ledger) begin(r v1alpha1.AcceptedRequest, at time.Time) error {
	if err := l.refuses(&r, at); err != nil {
		return err
	}
	l.takeOver(&r, at)
	switch {
	case len(r.Targets) > 0:
		l.beginLimited(r)
		return nil
	case Withdraws(r.Window) && (r.Action == v1alpha1.RequestOpen && l.open != nil && l.open.lasts(at) || r.Action == v1alpha1.RequestClose && l.isClosed(at)):
		return nil // it has withdrawn only requests with targets
	case r.Action == v1alpha1.RequestClose:
		l.beginClose(r, at)
		return nil
	}
	for _, closed := range l.closes {
		if !closed.lasts(at) {
			keepEnd(&closed.AcceptedRequest, closed.end) // a longer spec.window must not change the end
		}
	}
	l.ends(l.closes, &r)
	l.closes = nil
	if before := l.open; before != nil {
		if before.lasts(r.RequestedAt.Time) {
			// Rounding up would leave a gap between the two open requests.
			r.RequestedAt.Time = schedule.Later(r.RequestedAt.Truncate(time.Second), before.RequestedAt.Time)
		}
		before.end = schedule.Earlier(before.end, schedule.RoundUp(at))
	}
	l.open = l.addBegun(r)
	return nil
}

// beginClose puts a close request for the whole Gate in force. It ends the open request, unless that is later than a close request that is
// over.
func (l *Ledger) beginClose(r v1alpha1.AcceptedRequest, at time.Time) {
	if l.open != nil {
		if l.isOver(&r, l.open, at) {
			return
		}
		l.ends([]*inForce{l.open}, &r)
	}
	l.open = nil
	closed := l.addBegun(r)
	if slices.ContainsFunc(l.closes, func(other *inForce) bool { return other.covers(closed) }) {
		closed.end = closed.RequestedAt.Time
		return
	}
	l.closes = slices.DeleteFunc(l.closes, func(other *inForce) bool {
		if closed.covers(other) { // other is redundant once closed begins
			other.end = schedule.Earlier(other.end, closed.RequestedAt.Time)
			return true
		}
		return !other.lasts(at.Add(-MaxSkew)) // other has ended by the clocks of all replicas
	})
	l.closes = append(l.closes, closed)
	l.merge(r.Source)
}

// endsOpen returns whether a close request still matters although it had ended before the controller read it: it has ended an open request
// in force.
func (l *Ledger) endsOpen(r *v1alpha1.AcceptedRequest, now time.Time) bool {
	return r.Action == v1alpha1.RequestClose && slices.ContainsFunc(l.current(), func(open *inForce) bool {
		return open.Action == v1alpha1.RequestOpen && concerns(r.Targets, open.Targets) && open.lasts(now.Add(-MaxSkew)) && !l.isOver(r, open, now)
	})
}

// isOver returns whether a close request had ended before the controller read it, and an open request in force is later. It returns
// false if the close request would have refused the open request while it was planned.
func (l *Ledger) isOver(r *v1alpha1.AcceptedRequest, open *inForce, now time.Time) bool {
	end, closed := l.requestEnd(r), r.RequestedAt.Add(slack(r.Source, open.Source))
	refused := !open.AcceptedAt.After(closed) && open.RequestedAt.Time.Before(end)
	return !Withdraws(r.Window) && !end.IsZero() && !now.Add(-MaxSkew).Before(end) && open.RequestedAt.After(closed) && !refused
}

// refuses returns an error if a close request that is in force at an instant refuses an open request. A close request with targets does
// not refuse an open request for the whole Gate, but stays in force.
func (l *Ledger) refuses(r *v1alpha1.AcceptedRequest, at time.Time) error {
	if r.Action == v1alpha1.RequestClose {
		return nil
	}
	for _, closed := range l.current() {
		if closed.Action != v1alpha1.RequestClose || !closed.lasts(at) || !concerns(closed.Targets, r.Targets) {
			continue
		}
		if closed.Targets == nil && r.Targets != nil && Withdraws(r.Window) {
			continue // it ends only close requests with targets
		}
		if err := mayEnd(r, &closed.AcceptedRequest); err != nil {
			return fmt.Errorf(msgRefused, err, newRequest(closed.AcceptedRequest))
		}
	}
	return nil
}

// mayEnd returns an error if an open request must not end a close request in force. The open request must have the later time, and must not
// have been accepted earlier. If both were accepted together, its time must be later by more than the clock skew. Otherwise the Gate stays
// closed.
func mayEnd(open, closed *v1alpha1.AcceptedRequest) error {
	after := closed.RequestedAt.Add(slack(open.Source, closed.Source))
	switch {
	case open.Source == v1alpha1.SourceWebhook && closed.Source != v1alpha1.SourceWebhook:
		return ErrClosedByPeople
	case !open.RequestedAt.After(closed.RequestedAt.Time):
		return errors.New(msgNotAfterClose)
	case closed.AcceptedAt.After(open.AcceptedAt.Time):
		return errors.New(msgClosedSincePlanned)
	case closed.AcceptedAt.Equal(&open.AcceptedAt) && !open.RequestedAt.After(after):
		return errors.New(msgCloseFirst)
	}
	return nil
}

// ErrClosedByPeople is returned for an open request by a webhook while a manual close request is in force.
var ErrClosedByPeople = errors.New(msgClosedByPeople)
