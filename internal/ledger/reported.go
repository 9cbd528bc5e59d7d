package ledger

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// CloseRequested returns whether a Gate has an unhandled close request, in its annotation or in a line of v1alpha1.UnhandledAnnotation.
func CloseRequested(g *v1alpha1.Gate) bool {
	return len(Read(g).pending(v1alpha1.RequestClose, time.Time{})) > 0
}

// DecidedBy returns the request that caused the condition Opened, nil if there is none.
func DecidedBy(g *v1alpha1.Gate, now time.Time) *Request {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	if opened == nil {
		return nil
	}
	return At(g, now).Deciding(schedule.Reason(opened.Reason))
}

// RequestsAt returns the accepted requests that are in force at an instant, and those that are waiting or planned then. In the results,
// Until is the time when a request ends unless another one ends it earlier, or when a waiting request is dropped.
func RequestsAt(g *v1alpha1.Gate, now time.Time) (inForce, planned []v1alpha1.AcceptedRequest) {
	l := At(g, now)
	for _, s := range l.current() {
		if s.EndedAt == nil && s.lasts(now) {
			keepEnd(&s.AcceptedRequest, s.end)
			inForce = append(inForce, s.AcceptedRequest)
		}
	}
	for _, r := range l.Unapproved(now) {
		if r.State == v1alpha1.RequestWaiting {
			planned = append(planned, r)
		}
	}
	for _, r := range l.planned {
		keepEnd(&r, l.requestEnd(&r))
		planned = append(planned, r)
	}
	return inForce, planned
}

// ResetTimes returns the fields requestedAt and resetToDefaultAt of the RFC on gating, nil if they are not set. If the last request ended
// an opposite one early, and the Gate would be in the requested state even without requests, resetAt is the time of that request.
func (l *Ledger) ResetTimes(byItself func(time.Time) v1alpha1.State) (requestedAt, resetAt *metav1.Time) {
	r := l.last()
	if r == nil {
		return nil, nil
	}
	state, end := v1alpha1.StateOpened, r.end
	if r.Action == v1alpha1.RequestClose {
		state = v1alpha1.StateClosed
	}
	if l.endedEarly(r) && byItself(r.RequestedAt.Time) == state {
		end = r.RequestedAt.Time
	}
	requestedAt = &metav1.Time{Time: r.RequestedAt.Time}
	if end.IsZero() {
		return requestedAt, nil
	}
	return requestedAt, &metav1.Time{Time: end}
}

// NextBegin returns when the next planned request begins, zero if there is none.
func (l *Ledger) NextBegin() (at time.Time) {
	if len(l.planned) > 0 {
		at = l.planned[0].RequestedAt.Time
	}
	return at
}

// FirstClose returns the first close request to begin among those that have not ended, and when it begins. It returns nil if there is none.
// The start of a request that has begun is at most now, because the clock that wrote it may be ahead.
func (l *Ledger) FirstClose(now time.Time) (first *Request, at time.Time) {
	for _, r := range l.begun {
		if r.Action != v1alpha1.RequestClose || !r.lasts(now) {
			continue
		}
		start := r.RequestedAt.Time
		if r.begun {
			start = schedule.Earlier(start, now)
		}
		if at = schedule.Earlier(at, start); at.Equal(start) {
			request := newRequest(r.AcceptedRequest)
			first = &request
		}
	}
	return first, at
}
