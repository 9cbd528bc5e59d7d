package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// maxPlannedCloses is the maximum number of requesters with a planned close request.
	maxPlannedCloses = 8

	// maxCloses bounds the close requests in force per source, annotation or webhook. If there are more, see merge.
	maxCloses = 8

	// MaxSkew is the tolerated difference between the clocks of requesters, such as laptops, pipelines and replicas of the controller.
	MaxSkew = time.Minute
)

// ErrClosedByPeople refuses an open request by a webhook while a manual close request is in force.
var ErrClosedByPeople = errors.New(msgClosedByPeople)

// inForce is an accepted request that has begun. It is in force until end (zero: no end), unless another request ends it earlier.
type inForce struct {
	v1alpha1.AcceptedRequest
	end time.Time
	// begun is true if the request has begun by the clock of any replica.
	begun bool
}

// lasts returns whether the request is still in force at an instant.
func (r *inForce) lasts(at time.Time) bool { return r.end.IsZero() || at.Before(r.end) }

// newRequest converts an accepted request to a Request.
func newRequest(r v1alpha1.AcceptedRequest) Request {
	return Request{
		Action: r.Action, At: r.RequestedAt.Time, Window: r.Window, Unlimited: r.Unlimited, By: r.RequestedBy, Reason: r.Message, source: r.Source,
		Emergency: r.Emergency, Approvers: formatApprovers(&r), Annotation: annotationsOf(r.Action).requestedAt, Value: formatValue(&r),
	}
}

// Ledger holds the requests of a Gate that are in force, planned, or waiting for approval. Read loads it, Apply adds the new requests in
// the annotations, and Status returns what to store. A Ledger is not safe for concurrent use, and never changes its Gate.
type Ledger struct {
	gate *v1alpha1.Gate
	// handled has the records of handled annotations, lastLine is the number of the last handled line.
	handled  []v1alpha1.HandledRequest
	lastLine int64
	// changed is true if Apply changed the requests in the status, applied is the time of Apply.
	changed bool
	applied time.Time
	// limit is spec.window, nil if it is not set.
	limit *v1alpha1.Duration
	// open and closes are the requests in force, or the last ones. Only one of the two is set. A close request is kept only while it
	// refuses an open request that no other close request refuses.
	open   *inForce
	closes []*inForce
	// begun has open, closes, and the requests that they ended. An ended request may still be in force by the clock of another replica.
	begun []*inForce
	// planned has the planned requests, ordered by time.
	planned []v1alpha1.AcceptedRequest
	// waiting has the open requests that are due but lack approvals.
	waiting []v1alpha1.AcceptedRequest
	// required is the number of approvals that an open request needs.
	required int
	// voided has the requests that were dropped because they lacked approvals, each with the reason.
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
		case r.EndedAt != nil:
			l.addBegun(r)
		case r.Action != v1alpha1.RequestOpen:
			l.closes = append(l.closes, l.addBegun(r))
		case r.State == v1alpha1.RequestInForce || r.State == v1alpha1.RequestEnded:
			l.open = l.addBegun(r)
		} // fail closed: another version may have written an unknown state
	}
	for _, s := range l.begun {
		s.begun = true
	}
	l.sort()
	return l
}

// At returns the stored ledger of a Gate, and begins the planned requests that are due at an instant.
func At(g *v1alpha1.Gate, at time.Time) *Ledger {
	l := Read(g)
	l.advance(at)
	return l
}

// Ahead returns the stored ledger of a Gate, and begins all planned requests.
func Ahead(g *v1alpha1.Gate) *Ledger {
	l := Read(g)
	if n := len(l.planned); n > 0 {
		l.advance(l.planned[n-1].RequestedAt.Time)
	}
	return l
}

// sort orders the planned requests by time. At the same time, the close request comes last, so that it wins.
func (l *Ledger) sort() {
	slices.SortStableFunc(l.planned, func(a, b v1alpha1.AcceptedRequest) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt.Time), -strings.Compare(string(a.Action), string(b.Action)))
	})
}

// addBegun adds a request that has begun to begun, with its end.
func (l *Ledger) addBegun(r v1alpha1.AcceptedRequest) *inForce {
	s := &inForce{AcceptedRequest: r, end: l.requestEnd(&r)}
	if r.EndedAt != nil {
		s.end = schedule.Earlier(s.end, r.EndedAt.Time)
	}
	l.begun = append(l.begun, s)
	return s
}

// requestEnd returns when a request ends by itself, zero for never.
func (l *Ledger) requestEnd(r *v1alpha1.AcceptedRequest) time.Time {
	end := (&Request{Action: r.Action, At: r.RequestedAt.Time, Window: r.Window, Unlimited: r.Unlimited}).End(l.limit)
	if r.Until != nil {
		end = schedule.Earlier(end, r.Until.Time)
	}
	return end
}

// ends ends the other requests at the time of r.
func (l *Ledger) ends(others []*inForce, r *v1alpha1.AcceptedRequest) {
	for _, other := range others {
		at := r.RequestedAt
		other.EndedAt, other.end = &at, schedule.Earlier(other.end, at.Time)
	}
}

// End returns when a request ends by itself, zero for never. window is spec.window: it bounds every open request, but a close request only
// if that has no duration.
func (r *Request) End(window *v1alpha1.Duration) time.Time {
	switch {
	case r.Action == v1alpha1.RequestOpen:
		return windowEnd(r.At, window, r.Window)
	case r.Unlimited:
		return time.Time{}
	case r.Window != nil:
		return windowEnd(r.At, r.Window)
	}
	return windowEnd(r.At, window)
}

// windowEnd returns the end of the shortest window from start, zero if there is none.
func windowEnd(start time.Time, windows ...*v1alpha1.Duration) (end time.Time) {
	for _, window := range windows {
		if window != nil && window.Duration >= 0 { // an invalid spec.window ends no close request
			end = schedule.Earlier(end, start.Add(window.Duration))
		}
	}
	return end
}

// advance begins the planned requests that are due. It returns them, and those of them that are refused, with the reason.
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

// begin puts a request in force at an instant. A close request extends those in force. An open request ends all of them, or is refused.
func (l *Ledger) begin(r v1alpha1.AcceptedRequest, at time.Time) error {
	if r.Action == v1alpha1.RequestClose {
		l.beginClose(r, at)
		return nil
	}
	if err := l.refuses(&r, at); err != nil {
		return err
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

// beginClose puts a close request in force. It ends the open request and drops open requests that lack approvals.
func (l *Ledger) beginClose(r v1alpha1.AcceptedRequest, at time.Time) {
	l.voidUnapproved(&r)
	if l.open != nil {
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

// endsOpen returns whether a close request that had ended before the controller read it has ended the open request in force, or would have
// refused that while it was planned.
func (l *Ledger) endsOpen(r *Request, end, now time.Time) bool {
	if r.Action != v1alpha1.RequestClose || l.open == nil || !l.open.lasts(now.Add(-MaxSkew)) {
		return false
	}
	closed := r.At.Add(slack(r.source, l.open.Source))
	return !l.open.RequestedAt.After(closed) || !l.open.AcceptedAt.After(closed) && l.open.RequestedAt.Time.Before(end)
}

// refuses returns an error if a close request in force at an instant refuses an open request.
func (l *Ledger) refuses(r *v1alpha1.AcceptedRequest, at time.Time) error {
	for _, closed := range l.closes {
		if !closed.lasts(at) {
			continue
		}
		if err := mayEnd(r, &closed.AcceptedRequest); err != nil {
			return fmt.Errorf(msgRefused, err, newRequest(closed.AcceptedRequest))
		}
	}
	return nil
}

// mayEnd returns an error if an open request does not end a close request in force. The open request must have the later time and must not
// be accepted earlier. If both were accepted together, its time must be later by more than the clock skew. Otherwise the Gate stays closed.
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

// plan adds a request for a later time. An open request replaces the planned open request. A close request replaces only that of the same
// requester, so that users cannot cancel each other's plans.
func (l *Ledger) plan(r v1alpha1.AcceptedRequest) error {
	if r.Action == v1alpha1.RequestOpen {
		if err := l.refuses(&r, r.RequestedAt.Time); err != nil {
			return err
		}
	}
	planned := slices.DeleteFunc(slices.Clone(l.planned), func(other v1alpha1.AcceptedRequest) bool {
		return other.Action == r.Action && (r.Action == v1alpha1.RequestOpen || other.RequestedBy == r.RequestedBy)
	})
	closes := 0
	for _, other := range planned {
		if other.Action == v1alpha1.RequestClose {
			closes++
		}
	}
	if r.Action == v1alpha1.RequestClose && closes >= maxPlannedCloses {
		return fmt.Errorf(msgTooManyPlanned, closes)
	}
	r.State = v1alpha1.RequestPlanned
	planned = append(planned, r)
	l.planned = planned
	l.sort()
	return nil
}

// acceptedAt returns the acceptance time of requests that are read now. It is later than all previous ones, even if the clock of another
// replica is ahead.
func (l *Ledger) acceptedAt(now time.Time) metav1.MicroTime {
	at := now.Truncate(time.Microsecond)
	note := func(r *v1alpha1.AcceptedRequest) {
		if !at.After(r.AcceptedAt.Time) {
			at = r.AcceptedAt.Add(time.Microsecond)
		}
	}
	for _, s := range l.begun {
		note(&s.AcceptedRequest)
	}
	for i := range l.planned {
		note(&l.planned[i])
	}
	for i := range l.waiting {
		note(&l.waiting[i])
	}
	return metav1.NewMicroTime(at)
}

// follows returns whether r replaced other, a request for the opposite action.
func (r *inForce) follows(other *inForce) bool {
	return r != nil && other.Action != r.Action && other.EndedAt != nil
}

// endedEarly returns whether a request ended one for the opposite action that would still
// be in force.
func (l *Ledger) endedEarly(r *inForce) bool {
	return slices.ContainsFunc(l.begun, func(s *inForce) bool {
		end := l.requestEnd(&s.AcceptedRequest)
		return r.follows(s) && (end.IsZero() || !end.Before(r.RequestedAt.Time))
	})
}

// last returns the request that is in force or was last, nil if there was none. Of several close requests, it returns the one that ends
// last, and of those with the same end the one with the latest time.
func (l *Ledger) last() *inForce {
	last := l.open
	for _, s := range l.closes {
		if last == nil || cmp.Or(compareEnds(s.end, last.end), s.RequestedAt.Compare(last.RequestedAt.Time)) >= 0 {
			last = s
		}
	}
	return last
}

// Deciding returns the request behind a decision with the reason OpenRequested or CloseRequested, nil for any other reason. A close request
// covers the whole seconds in which it begins and ends, so it may still be planned, or have ended.
func (l *Ledger) Deciding(reason schedule.Reason) *Request {
	action := v1alpha1.RequestOpen
	switch reason {
	case schedule.OpenRequested:
	case schedule.CloseRequested:
		action = v1alpha1.RequestClose
	default:
		return nil
	}
	var candidates []v1alpha1.AcceptedRequest
	if last := l.last(); last != nil {
		candidates = append(candidates, last.AcceptedRequest)
	}
	for _, s := range slices.Backward(l.begun) {
		candidates = append(candidates, s.AcceptedRequest)
	}
	candidates = append(candidates, l.planned...)
	i := slices.IndexFunc(candidates, func(r v1alpha1.AcceptedRequest) bool { return r.Action == action })
	if i < 0 {
		return nil
	}
	r := newRequest(candidates[i])
	return &r
}

// Periods returns the requests as periods of a schedule at an instant. Fractions of a second are rounded so that the Gate never opens early
// or closes late. A close request that has begun stays in force even if the clock is now behind.
func (l *Ledger) Periods(now time.Time) (opened, closed []schedule.Period) {
	for _, s := range l.begun {
		start := s.RequestedAt.Time
		switch {
		case Withdraws(s.Window): // rounded, it would last a second
		case s.Action == v1alpha1.RequestOpen:
			opened = append(opened, schedule.Between("", schedule.RoundUp(start), s.end))
		case s.begun && now.Before(start):
			closed = append(closed, schedule.Between("", now.Truncate(time.Second), schedule.RoundUp(s.end)))
		default:
			closed = append(closed, schedule.Between("", start, schedule.RoundUp(s.end)))
		}
	}
	return opened, closed
}
