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
	// maxPlannedCloses is how many people can each have a close request planned.
	maxPlannedCloses = 8

	// maxCloses is how many closes of people, and of webhooks, are kept in force. To reach
	// it, each must be shorter than the one before.
	maxCloses = 8

	// MaxSkew is how far the clocks of requesters may be apart: laptops, pipelines and the
	// replicas of the controller.
	MaxSkew = time.Minute
)

// ErrClosedByPeople is returned for an open request of a webhook while a Gate is closed
// because somebody asked for that by hand.
var ErrClosedByPeople = errors.New("only people end what people have closed")

// inForce is an accepted request and when it ends, zero for never. It ends early if
// another request ends it.
type inForce struct {
	v1alpha1.AcceptedRequest
	end time.Time
	// begun says that its time has come once, by the clock of some replica.
	begun bool
}

func (r *inForce) lasts(at time.Time) bool { return r.end.IsZero() || at.Before(r.end) }

// requestOf returns an accepted request as it was made.
func requestOf(r v1alpha1.AcceptedRequest) Request {
	return Request{
		Action: r.Action, At: r.RequestedAt.Time, Window: r.Window, Unlimited: r.Unlimited, By: r.RequestedBy, Reason: r.Message, source: r.Source,
		Emergency: r.Emergency, Approvers: approversOf(&r), Annotation: annotationsOf(r.Action).requestedAt, Value: valueOf(&r),
	}
}

// Ledger holds the requests of a Gate: those in force, planned ones, and those that wait for approval. Read returns it, Apply adds what is new
// in the annotations, and Status returns what to store. A Ledger is for one goroutine and never changes the Gate that it was read from.
type Ledger struct {
	gate *v1alpha1.Gate
	// handled are the records of the annotations that were handled, lastLine is the number of the last handled line.
	handled  []v1alpha1.HandledRequest
	lastLine int64
	// changed says that the stored requests differ from those of the Gate, as of the time of Apply.
	changed bool
	applied time.Time
	// limit is the window of the Gate, nil for none.
	limit *v1alpha1.Duration
	// open and closes are in force, or were last. They are never both set. A close is kept
	// only while there can be an open request that it alone would refuse.
	open   *inForce
	closes []*inForce
	// spans are all of these, and those that they have ended. By the clock of another
	// replica an ended request may still last.
	spans []*inForce
	// planned requests in the order in which they begin.
	planned []v1alpha1.AcceptedRequest
	// waiting are the open requests whose time has come, and that too few have approved.
	waiting []v1alpha1.AcceptedRequest
	// required is how many others have to approve an open request.
	required int
	// voided are the unapproved requests that are dropped, each with the reason.
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
			l.span(r)
		case r.Action != v1alpha1.RequestOpen:
			l.closes = append(l.closes, l.span(r))
		case r.State == v1alpha1.RequestInForce || r.State == v1alpha1.RequestEnded:
			l.open = l.span(r)
		} // an open request with a state of another release opens nothing
	}
	for _, s := range l.spans {
		s.begun = true
	}
	l.sort()
	return l
}

// At returns the ledger in the status of a Gate at an instant: planned requests whose time has come have begun.
func At(g *v1alpha1.Gate, at time.Time) *Ledger {
	l := Read(g)
	l.advance(at)
	return l
}

// Ahead returns the ledger in the status of a Gate as if the time of every planned request had come.
func Ahead(g *v1alpha1.Gate) *Ledger {
	l := Read(g)
	if n := len(l.planned); n > 0 {
		l.advance(l.planned[n-1].RequestedAt.Time)
	}
	return l
}

// sort orders the planned requests. Of two for the same time the close comes last, and
// stays.
func (l *Ledger) sort() {
	slices.SortStableFunc(l.planned, func(a, b v1alpha1.AcceptedRequest) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt.Time), -strings.Compare(string(a.Action), string(b.Action)))
	})
}

func (l *Ledger) span(r v1alpha1.AcceptedRequest) *inForce {
	s := &inForce{AcceptedRequest: r, end: l.endOf(&r)}
	if r.EndedAt != nil {
		s.end = schedule.Earlier(s.end, r.EndedAt.Time)
	}
	l.spans = append(l.spans, s)
	return s
}

// endOf returns when a request ends by itself, zero for never.
func (l *Ledger) endOf(r *v1alpha1.AcceptedRequest) time.Time {
	end := (&Request{Action: r.Action, At: r.RequestedAt.Time, Window: r.Window, Unlimited: r.Unlimited}).End(l.limit)
	if r.Until != nil {
		end = schedule.Earlier(end, r.Until.Time)
	}
	return end
}

// ends replaces others with a request.
func (l *Ledger) ends(others []*inForce, r *v1alpha1.AcceptedRequest) {
	for _, other := range others {
		at := r.RequestedAt
		other.EndedAt, other.end = &at, schedule.Earlier(other.end, at.Time)
	}
}

// End returns when a request ends by itself, zero for never. spec.window bounds an open request. A close lasts that long only if it does
// not say for how long.
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

// windowEnd returns the end of the shortest of some windows that begin at an instant, zero
// for never.
func windowEnd(start time.Time, windows ...*v1alpha1.Duration) (end time.Time) {
	for _, window := range windows {
		if window != nil && window.Duration >= 0 { // an invalid spec.window ends no close request
			end = schedule.Earlier(end, start.Add(window.Duration))
		}
	}
	return end
}

// advance begins the planned requests whose time has come. It returns all of them, and
// those that are refused, with the reason.
func (l *Ledger) advance(now time.Time) (begun []v1alpha1.AcceptedRequest, refused []Request) {
	for len(l.planned) > 0 && !l.planned[0].RequestedAt.After(now) {
		r := l.planned[0]
		l.planned, r.State = l.planned[1:], v1alpha1.RequestInForce
		if err := l.beginOrWait(r, r.RequestedAt.Time); err != nil {
			void := requestOf(r)
			void.Err = err
			refused = append(refused, void)
		}
		begun = append(begun, r)
	}
	return begun, refused
}

// begin puts a request in force at an instant. A close only ever extends the closes in
// force. An open ends all of them, or it is refused.
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
			keepEnd(&closed.AcceptedRequest, closed.end) // a longer spec.window must not change it
		}
	}
	l.ends(l.closes, &r)
	l.closes = nil
	if before := l.open; before != nil {
		if before.lasts(r.RequestedAt.Time) {
			// Rounded up, its time would leave a gap.
			r.RequestedAt.Time = schedule.Later(r.RequestedAt.Truncate(time.Second), before.RequestedAt.Time)
		}
		before.end = schedule.Earlier(before.end, schedule.RoundUp(at))
	}
	l.open = l.span(r)
	return nil
}

func (l *Ledger) beginClose(r v1alpha1.AcceptedRequest, at time.Time) {
	l.voidUnapproved(&r)
	if l.open != nil {
		l.ends([]*inForce{l.open}, &r)
	}
	l.open = nil
	closed := l.span(r)
	if slices.ContainsFunc(l.closes, func(other *inForce) bool { return other.covers(closed) }) {
		closed.end = closed.RequestedAt.Time
		return
	}
	l.closes = slices.DeleteFunc(l.closes, func(other *inForce) bool {
		if closed.covers(other) { // from its beginning on
			other.end = schedule.Earlier(other.end, closed.RequestedAt.Time)
			return true
		}
		return !other.lasts(at.Add(-MaxSkew)) // it is over by every clock
	})
	l.closes = append(l.closes, closed)
	l.merge(r.Source)
}

// endsOpen returns whether a close that was over before anybody saw it has ended the open
// request in force, or would have refused it when that was still planned.
func (l *Ledger) endsOpen(r *Request, end, now time.Time) bool {
	if r.Action != v1alpha1.RequestClose || l.open == nil || !l.open.lasts(now.Add(-MaxSkew)) {
		return false
	}
	closed := r.At.Add(slack(r.source, l.open.Source))
	return !l.open.RequestedAt.After(closed) || !l.open.AcceptedAt.After(closed) && l.open.RequestedAt.Time.Before(end)
}

// refuses returns why an open request must not begin at an instant, nil if it may.
func (l *Ledger) refuses(r *v1alpha1.AcceptedRequest, at time.Time) error {
	for _, closed := range l.closes {
		if !closed.lasts(at) {
			continue
		}
		if err := mayEnd(r, &closed.AcceptedRequest); err != nil {
			return fmt.Errorf("is refused, %w: %s", err, requestOf(closed.AcceptedRequest))
		}
	}
	return nil
}

// mayEnd returns why an open request does not end a close request in force. The order in
// which they were seen tells which came last. If they were seen together, only their times
// tell, as far as the clocks agree. In doubt, the Gate stays closed.
func mayEnd(open, closed *v1alpha1.AcceptedRequest) error {
	after := closed.RequestedAt.Add(slack(open.Source, closed.Source))
	switch {
	case open.Source == v1alpha1.SourceWebhook && closed.Source != v1alpha1.SourceWebhook:
		return ErrClosedByPeople
	case !open.RequestedAt.After(closed.RequestedAt.Time):
		return errors.New("its time is not later than that of a close request in force, request it again")
	case closed.AcceptedAt.After(open.AcceptedAt.Time):
		return errors.New("a user has closed the gate since this was planned")
	case closed.AcceptedAt.Equal(&open.AcceptedAt) && !open.RequestedAt.After(after):
		return errors.New("a close request of about the same time comes first, request it again")
	}
	return nil
}

// plan adds a request whose time is still to come. An open replaces any planned open. A
// close replaces only a close of the same person, so that nobody lifts what others have
// planned.
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
		return fmt.Errorf("must wait: %d people have close requests planned, and a gate keeps no more", closes)
	}
	r.State = v1alpha1.RequestPlanned
	planned = append(planned, r)
	l.planned = planned
	l.sort()
	return nil
}

// acceptedAt returns when what is seen now is accepted. It is later than everything seen
// before, even if another clock is ahead of ours.
func (l *Ledger) acceptedAt(now time.Time) metav1.MicroTime {
	at := now.Truncate(time.Microsecond)
	note := func(r *v1alpha1.AcceptedRequest) {
		if !at.After(r.AcceptedAt.Time) {
			at = r.AcceptedAt.Add(time.Microsecond)
		}
	}
	for _, s := range l.spans {
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

// follows returns whether a request took the place of one for the opposite action.
func (r *inForce) follows(other *inForce) bool {
	return r != nil && other.Action != r.Action && other.EndedAt != nil
}

// endedEarly returns whether a request ended one for the opposite action that would still
// be in force.
func (l *Ledger) endedEarly(r *inForce) bool {
	return slices.ContainsFunc(l.spans, func(s *inForce) bool {
		end := l.endOf(&s.AcceptedRequest)
		return r.follows(s) && (end.IsZero() || !end.Before(r.RequestedAt.Time))
	})
}

// last returns the request that is in force or was last, nil if there was none. Of several
// closes it returns the one that lasts longest, and of those that end together the one with
// the latest time.
func (l *Ledger) last() *inForce {
	last := l.open
	for _, s := range l.closes {
		if last == nil || cmp.Or(compareEnds(s.end, last.end), s.RequestedAt.Compare(last.RequestedAt.Time)) >= 0 {
			last = s
		}
	}
	return last
}

// Deciding returns the request that decides if the reason of a decision is a request, nil
// otherwise. A close request lasts for all of the seconds in which it begins and ends.
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
	for _, s := range slices.Backward(l.spans) {
		candidates = append(candidates, s.AcceptedRequest)
	}
	candidates = append(candidates, l.planned...)
	i := slices.IndexFunc(candidates, func(r v1alpha1.AcceptedRequest) bool { return r.Action == action })
	if i < 0 {
		return nil
	}
	r := requestOf(candidates[i])
	return &r
}

// Periods returns the requests as periods of a schedule at an instant. Fractions of a
// second are rounded so that nothing opens early or closes late. A close request that has
// begun stays begun even if the clock is now behind.
func (l *Ledger) Periods(now time.Time) (opened, closed []schedule.Period) {
	for _, s := range l.spans {
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
