package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

const (
	// maxPlannedCloses is the maximum number of requesters with a planned close request.
	maxPlannedCloses = 8

	// maxCloses bounds the close requests in force from each source, annotation or webhook. If there are more, merge drops one.
	maxCloses = 8

	// MaxSkew is the tolerated difference between the clocks of requesters, such as laptops, pipelines and replicas of the controller.
	MaxSkew = time.Minute
)

// inForce is an accepted request that has begun. It is in force until end, or until another request ends it earlier. A zero end means
// never.
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
		Targets: r.Targets, Emergency: r.Emergency, Approvers: formatApprovers(&r), Annotation: annotationsOf(r.Action).requestedAt, Value: formatValue(&r),
	}
}

// addBegun adds a request that has begun to l.begun, and sets its end.
func (l *Ledger) addBegun(r v1alpha1.AcceptedRequest) *inForce {
	s := l.started(r)
	l.begun = append(l.begun, s)
	return s
}

// started returns a request that has begun, with its end.
func (l *Ledger) started(r v1alpha1.AcceptedRequest) *inForce {
	s := &inForce{AcceptedRequest: r, end: l.requestEnd(&r)}
	if r.EndedAt != nil {
		s.end = schedule.Earlier(s.end, r.EndedAt.Time)
	}
	return s
}

// requestEnd returns when a request ends unless another request ends it earlier, zero for never.
func (l *Ledger) requestEnd(r *v1alpha1.AcceptedRequest) time.Time {
	end := (&Request{Action: r.Action, At: r.RequestedAt.Time, Window: r.Window, Unlimited: r.Unlimited}).End(l.limit)
	if r.Until != nil {
		end = schedule.Earlier(end, r.Until.Time)
	}
	return end
}

// ends sets the end of the other requests to the time of r, unless they end earlier.
func (l *Ledger) ends(others []*inForce, r *v1alpha1.AcceptedRequest) {
	for _, other := range others {
		at := r.RequestedAt
		other.EndedAt, other.end = &at, schedule.Earlier(other.end, at.Time)
	}
}

// End returns when a request ends unless another request ends it earlier, zero for never. window is spec.window. It bounds every open
// request, and close requests that have no duration and are not unlimited.
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

// plan adds a request with a future time to planned. An open request replaces the planned open request for the same targets. A close request
// replaces only a planned close request of the same requester, so that users cannot cancel each other's plans.
func (l *Ledger) plan(r v1alpha1.AcceptedRequest) error {
	if r.Action == v1alpha1.RequestOpen {
		if err := l.refuses(&r, r.RequestedAt.Time); err != nil {
			return err
		}
	}
	planned := slices.DeleteFunc(slices.Clone(l.planned), func(other v1alpha1.AcceptedRequest) bool {
		return other.Action == r.Action && slices.Equal(other.Targets, r.Targets) && (r.Action == v1alpha1.RequestOpen || other.RequestedBy == r.RequestedBy)
	})
	closes := 0
	for _, other := range planned {
		if other.Action == v1alpha1.RequestClose && other.Targets == nil {
			closes++
		}
	}
	if r.Action == v1alpha1.RequestClose && r.Targets == nil && closes >= maxPlannedCloses {
		return fmt.Errorf(msgTooManyPlanned, closes)
	}
	r.State = v1alpha1.RequestPlanned
	planned = append(planned, r)
	l.planned = planned
	l.sort()
	return nil
}

// acceptedAt returns the acceptance time for requests that are read at now. It is later than all previous acceptance times, even if the
// clock of another replica is ahead.
func (l *Ledger) acceptedAt(now time.Time) metav1.MicroTime {
	at := now.Truncate(time.Microsecond)
	note := func(r *v1alpha1.AcceptedRequest) {
		if !at.After(r.AcceptedAt.Time) {
			at = r.AcceptedAt.Add(time.Microsecond)
		}
	}
	for _, s := range slices.Concat(l.begun, l.limited) {
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

// follows returns whether r follows other: other is for the opposite action, and another request has ended it. If r is nil, follows returns
// false.
func (r *inForce) follows(other *inForce) bool {
	return r != nil && other.Action != r.Action && other.EndedAt != nil
}

// endedEarly returns whether r ended a request for the opposite action that would otherwise have been in force when r began.
func (l *Ledger) endedEarly(r *inForce) bool {
	return slices.ContainsFunc(l.begun, func(s *inForce) bool {
		end := l.requestEnd(&s.AcceptedRequest)
		return r.follows(s) && (end.IsZero() || !end.Before(r.RequestedAt.Time))
	})
}

// last returns the request in force, or the last one if none is. It returns nil if there was none. If there are several close requests, it
// returns the one that ends last, or the one with the latest time if the ends are equal.
func (l *Ledger) last() *inForce {
	last := l.open
	for _, s := range l.closes {
		if last == nil || cmp.Or(compareEnds(s.end, last.end), s.RequestedAt.Compare(last.RequestedAt.Time)) >= 0 {
			last = s
		}
	}
	return last
}

// Deciding returns the request that caused a decision with the reason OpenRequested or CloseRequested, nil for any other reason. The result
// may be planned or have ended, because a close request counts for whole seconds.
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
	i := slices.IndexFunc(candidates, func(r v1alpha1.AcceptedRequest) bool { return r.Action == action && r.Targets == nil })
	if i < 0 {
		return nil
	}
	r := newRequest(candidates[i])
	return &r
}

// Periods returns the requests as periods of the schedule. Fractions of a second are rounded so that the Gate never opens early or closes
// late. A close request that has begun stays in force even if the clock is behind now.
func (l *Ledger) Periods(now time.Time) (opened, closed []schedule.Period) {
	for _, s := range l.begun {
		start := s.RequestedAt.Time
		switch {
		case Withdraws(s.Window): // after rounding, it would last a second
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

// OldestEndless returns the time of the oldest request in force that lasts until another request ends it, zero if there is none.
func OldestEndless(g *v1alpha1.Gate, action v1alpha1.RequestAction) (at time.Time) {
	for _, r := range g.Status.Requests {
		if r.Action == action && r.State == v1alpha1.RequestInForce && r.Until == nil && r.EndedAt == nil {
			at = schedule.Earlier(at, r.RequestedAt.Time)
		}
	}
	return at
}
