package gate

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

	// maxSkew is how far the clocks of requesters may be apart: laptops, pipelines and the
	// replicas of the controller.
	maxSkew = time.Minute
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
		Emergency: r.Emergency, approvers: approversOf(&r), Annotation: annotationsOf(r.Action).requestedAt, Value: valueOf(&r),
	}
}

// course is what the accepted requests of a Gate amount to.
type course struct {
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

// courseOf returns the course of the requests in the status of a Gate.
func courseOf(g *v1alpha1.Gate) *course {
	c := &course{limit: g.Spec.Window, required: g.RequiredApprovals()}
	for _, r := range g.Status.Requests {
		switch {
		case r.State == v1alpha1.RequestPlanned:
			c.planned = append(c.planned, r)
		case r.State == v1alpha1.RequestWaiting:
			c.waiting = append(c.waiting, r)
		case r.EndedAt != nil:
			c.span(r)
		case r.Action != v1alpha1.RequestOpen:
			c.closes = append(c.closes, c.span(r))
		case r.State == v1alpha1.RequestInForce || r.State == v1alpha1.RequestEnded:
			c.open = c.span(r)
		} // an open request with a state of another release opens nothing
	}
	for _, s := range c.spans {
		s.begun = true
	}
	c.sort()
	return c
}

// courseAt returns the course at an instant.
func courseAt(g *v1alpha1.Gate, at time.Time) *course {
	c := courseOf(g)
	c.advance(at)
	return c
}

// wholeCourse returns the course as if the time of everything planned had come.
func wholeCourse(g *v1alpha1.Gate) *course {
	c := courseOf(g)
	if n := len(c.planned); n > 0 {
		c.advance(c.planned[n-1].RequestedAt.Time)
	}
	return c
}

// sort orders the planned requests. Of two for the same time the close comes last, and
// stays.
func (c *course) sort() {
	slices.SortStableFunc(c.planned, func(a, b v1alpha1.AcceptedRequest) int {
		return cmp.Or(a.RequestedAt.Compare(b.RequestedAt.Time), -strings.Compare(string(a.Action), string(b.Action)))
	})
}

func (c *course) span(r v1alpha1.AcceptedRequest) *inForce {
	s := &inForce{AcceptedRequest: r, end: c.endOf(&r)}
	if r.EndedAt != nil {
		s.end = earlier(s.end, r.EndedAt.Time)
	}
	c.spans = append(c.spans, s)
	return s
}

// endOf returns when a request ends by itself, zero for never.
func (c *course) endOf(r *v1alpha1.AcceptedRequest) time.Time {
	end := (&Request{Action: r.Action, At: r.RequestedAt.Time, Window: r.Window, Unlimited: r.Unlimited}).end(c.limit)
	if r.Until != nil {
		end = earlier(end, r.Until.Time)
	}
	return end
}

// ends replaces others with a request.
func (c *course) ends(others []*inForce, r *v1alpha1.AcceptedRequest) {
	for _, other := range others {
		at := r.RequestedAt
		other.EndedAt, other.end = &at, earlier(other.end, at.Time)
	}
}

// end returns when a request ends by itself, zero for never. spec.window bounds an open request. A close lasts that long only if it does
// not say for how long.
func (r *Request) end(window *v1alpha1.Duration) time.Time {
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
			end = earlier(end, start.Add(window.Duration))
		}
	}
	return end
}

// advance begins the planned requests whose time has come. It returns all of them, and
// those that are refused, with the reason.
func (c *course) advance(now time.Time) (begun []v1alpha1.AcceptedRequest, refused []Request) {
	for len(c.planned) > 0 && !c.planned[0].RequestedAt.After(now) {
		r := c.planned[0]
		c.planned, r.State = c.planned[1:], v1alpha1.RequestInForce
		if err := c.beginOrWait(r, r.RequestedAt.Time); err != nil {
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
func (c *course) begin(r v1alpha1.AcceptedRequest, at time.Time) error {
	if r.Action == v1alpha1.RequestClose {
		c.beginClose(r, at)
		return nil
	}
	if err := c.refuses(&r, at); err != nil {
		return err
	}
	for _, closed := range c.closes {
		if !closed.lasts(at) {
			keepEnd(&closed.AcceptedRequest, closed.end) // a longer spec.window must not change it
		}
	}
	c.ends(c.closes, &r)
	c.closes = nil
	if before := c.open; before != nil {
		if before.lasts(r.RequestedAt.Time) {
			// Rounded up, its time would leave a gap.
			r.RequestedAt.Time = later(r.RequestedAt.Truncate(time.Second), before.RequestedAt.Time)
		}
		before.end = earlier(before.end, roundUp(at))
	}
	c.open = c.span(r)
	return nil
}

func (c *course) beginClose(r v1alpha1.AcceptedRequest, at time.Time) {
	c.voidUnapproved(&r)
	if c.open != nil {
		c.ends([]*inForce{c.open}, &r)
	}
	c.open = nil
	closed := c.span(r)
	if slices.ContainsFunc(c.closes, func(other *inForce) bool { return other.covers(closed) }) {
		closed.end = closed.RequestedAt.Time
		return
	}
	c.closes = slices.DeleteFunc(c.closes, func(other *inForce) bool {
		if closed.covers(other) { // from its beginning on
			other.end = earlier(other.end, closed.RequestedAt.Time)
			return true
		}
		return !other.lasts(at.Add(-maxSkew)) // it is over by every clock
	})
	c.closes = append(c.closes, closed)
	c.merge(r.Source)
}

// endsOpen returns whether a close that was over before anybody saw it has ended the open
// request in force, or would have refused it when that was still planned.
func (c *course) endsOpen(r *Request, end, now time.Time) bool {
	if r.Action != v1alpha1.RequestClose || c.open == nil || !c.open.lasts(now.Add(-maxSkew)) {
		return false
	}
	closed := r.At.Add(slack(r.source, c.open.Source))
	return !c.open.RequestedAt.After(closed) || !c.open.AcceptedAt.After(closed) && c.open.RequestedAt.Time.Before(end)
}

// refuses returns why an open request must not begin at an instant, nil if it may.
func (c *course) refuses(r *v1alpha1.AcceptedRequest, at time.Time) error {
	for _, closed := range c.closes {
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
		return errors.New("somebody has closed the gate since this was planned")
	case closed.AcceptedAt.Equal(&open.AcceptedAt) && !open.RequestedAt.After(after):
		return errors.New("a close request of about the same time comes first, request it again")
	}
	return nil
}

// plan adds a request whose time is still to come. An open replaces any planned open. A
// close replaces only a close of the same person, so that nobody lifts what others have
// planned.
func (c *course) plan(r v1alpha1.AcceptedRequest) error {
	if r.Action == v1alpha1.RequestOpen {
		if err := c.refuses(&r, r.RequestedAt.Time); err != nil {
			return err
		}
	}
	planned := slices.DeleteFunc(slices.Clone(c.planned), func(other v1alpha1.AcceptedRequest) bool {
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
	c.planned = planned
	c.sort()
	return nil
}

// acceptedAt returns when what is seen now is accepted. It is later than everything seen
// before, even if another clock is ahead of ours.
func (c *course) acceptedAt(now time.Time) metav1.MicroTime {
	at := now.Truncate(time.Microsecond)
	note := func(r *v1alpha1.AcceptedRequest) {
		if !at.After(r.AcceptedAt.Time) {
			at = r.AcceptedAt.Add(time.Microsecond)
		}
	}
	for _, s := range c.spans {
		note(&s.AcceptedRequest)
	}
	for i := range c.planned {
		note(&c.planned[i])
	}
	for i := range c.waiting {
		note(&c.waiting[i])
	}
	return metav1.NewMicroTime(at)
}

// follows returns whether a request took the place of one for the opposite action.
func (r *inForce) follows(other *inForce) bool {
	return r != nil && other.Action != r.Action && other.EndedAt != nil
}

// endedEarly returns whether a request ended one for the opposite action that would still
// be in force.
func (c *course) endedEarly(r *inForce) bool {
	return slices.ContainsFunc(c.spans, func(s *inForce) bool {
		end := c.endOf(&s.AcceptedRequest)
		return r.follows(s) && (end.IsZero() || !end.Before(r.RequestedAt.Time))
	})
}

// last returns the request that is in force or was last, nil if there was none. Of several
// closes it returns the one that lasts longest, and of those that end together the one with
// the latest time.
func (c *course) last() *inForce {
	last := c.open
	for _, s := range c.closes {
		if last == nil || cmp.Or(compareEnds(s.end, last.end), s.RequestedAt.Compare(last.RequestedAt.Time)) >= 0 {
			last = s
		}
	}
	return last
}

// deciding returns the request that decides if the reason of a decision is a request, nil
// otherwise. A close request lasts for all of the seconds in which it begins and ends.
func (c *course) deciding(reason schedule.Reason) *Request {
	action := v1alpha1.RequestOpen
	switch reason {
	case schedule.OpenRequested:
	case schedule.CloseRequested:
		action = v1alpha1.RequestClose
	default:
		return nil
	}
	var candidates []v1alpha1.AcceptedRequest
	if last := c.last(); last != nil {
		candidates = append(candidates, last.AcceptedRequest)
	}
	for _, s := range slices.Backward(c.spans) {
		candidates = append(candidates, s.AcceptedRequest)
	}
	candidates = append(candidates, c.planned...)
	i := slices.IndexFunc(candidates, func(r v1alpha1.AcceptedRequest) bool { return r.Action == action })
	if i < 0 {
		return nil
	}
	r := requestOf(candidates[i])
	return &r
}

// periods returns the requests as periods of a schedule at an instant. Fractions of a
// second are rounded so that nothing opens early or closes late. A close request that has
// begun stays begun even if the clock is now behind.
func (c *course) periods(now time.Time) (opened, closed []schedule.Period) {
	for _, s := range c.spans {
		start := s.RequestedAt.Time
		switch {
		case withdraws(s.Window): // rounded, it would last a second
		case s.Action == v1alpha1.RequestOpen:
			opened = append(opened, span("", roundUp(start), s.end))
		case s.begun && now.Before(start):
			closed = append(closed, span("", now.Truncate(time.Second), roundUp(s.end)))
		default:
			closed = append(closed, span("", start, roundUp(s.end)))
		}
	}
	return opened, closed
}
