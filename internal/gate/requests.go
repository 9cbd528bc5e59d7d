package gate

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// maxRequestDistance is how far from now the time of a request may be. Farther
// ones are taken for typing errors.
const maxRequestDistance = 366 * 24 * time.Hour

// A Request is an annotation that was not handled before.
type Request struct {
	Action v1alpha1.RequestAction
	// Annotation that holds the request, and its value.
	Annotation, Value string
	// At is the time that the request is in force from.
	At time.Time
	// Reason given with it.
	Reason string
	// Err says why the request was refused, nil if it was accepted.
	Err error
}

var requestAnnotations = []struct {
	action              v1alpha1.RequestAction
	requestedAt, reason string
}{
	{v1alpha1.RequestOpen, v1alpha1.OpenRequestedAtAnnotation, v1alpha1.OpenReasonAnnotation},
	{v1alpha1.RequestClose, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.CloseReasonAnnotation},
}

// HandleRequests looks for request annotations that were not handled before,
// remembers them in the status of the Gate, and returns them. A value is looked
// at once; a missing annotation changes nothing.
func HandleRequests(g *v1alpha1.Gate, now time.Time) []Request {
	var handled []Request
	for _, a := range requestAnnotations {
		value, ok := g.Annotations[a.requestedAt]
		memory := memoryOf(g, a.action)
		if !ok || (memory != nil && memory.LastHandled == value) {
			continue
		}
		if memory == nil {
			g.Status.Requests = append(g.Status.Requests, v1alpha1.RequestMemory{Action: a.action})
			memory = &g.Status.Requests[len(g.Status.Requests)-1]
		}
		memory.LastHandled = value
		r := Request{Action: a.action, Annotation: a.requestedAt, Value: value, Reason: g.Annotations[a.reason]}
		r.At, r.Err = parseRequest(value, memory.RequestedAt, now)
		if r.Err == nil {
			memory.RequestedAt = &metav1.MicroTime{Time: r.At}
		}
		handled = append(handled, r)
	}
	var last *Request
	for i := range handled {
		if r := &handled[i]; r.Err == nil && (last == nil || !r.At.Before(last.At)) {
			last = r
		}
	}
	if last != nil {
		g.Status.LastRequest = &v1alpha1.LastRequest{
			Action: last.Action, RequestedAt: metav1.NewTime(last.At), Reason: last.Reason, Source: v1alpha1.SourceAnnotation,
		}
	}
	return handled
}

// parseRequest refuses, besides nonsense, a time before that of a request which
// is over already: it is the old value that Flux puts back if one is in Git. A
// planned request can be brought forward.
func parseRequest(value string, before *metav1.MicroTime, now time.Time) (time.Time, error) {
	at, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}, fmt.Errorf("must be a time in RFC 3339 such as %s", now.UTC().Format(time.RFC3339))
	}
	at = at.UTC().Truncate(time.Microsecond)
	if distance := at.Sub(now).Abs(); distance > maxRequestDistance {
		return time.Time{}, fmt.Errorf("must be at most 366 days away from now, %s", now.UTC().Format(time.RFC3339))
	}
	if before != nil && at.Before(before.Time) && !before.After(now) {
		return time.Time{}, fmt.Errorf("must not be earlier than the request of %s that was handled before", before.UTC().Format(time.RFC3339Nano))
	}
	return at, nil
}

func memoryOf(g *v1alpha1.Gate, action v1alpha1.RequestAction) *v1alpha1.RequestMemory {
	for i := range g.Status.Requests {
		if g.Status.Requests[i].Action == action {
			return &g.Status.Requests[i]
		}
	}
	return nil
}

// requests are the times of the accepted requests, zero where there is none.
type requests struct {
	open, close time.Time
	window      time.Duration
}

func requestsOf(g *v1alpha1.Gate) requests {
	at := func(action v1alpha1.RequestAction) time.Time {
		if m := memoryOf(g, action); m != nil && m.RequestedAt != nil {
			return m.RequestedAt.Time
		}
		return time.Time{}
	}
	r := requests{open: at(v1alpha1.RequestOpen), close: at(v1alpha1.RequestClose)}
	if g.Spec.Window != nil {
		r.window = g.Spec.Window.Duration
	}
	return r
}

// end returns when a request made at a time is over, zero if never.
func (r requests) end(at time.Time) time.Time {
	if r.window == 0 {
		return time.Time{}
	}
	return at.Add(r.window)
}

// latest returns the request that is the newest of those whose time has come;
// on a tie, close. ok is false if there is none.
func (r requests) latest(now time.Time) (action v1alpha1.RequestAction, at time.Time, ok bool) {
	come := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	switch {
	case come(r.close) && (!come(r.open) || !r.open.After(r.close)):
		return v1alpha1.RequestClose, r.close, true
	case come(r.open):
		return v1alpha1.RequestOpen, r.open, true
	}
	return "", time.Time{}, false
}

// periods returns when the requests are in force: each from its time on for the
// window, the earlier one until the later one at most. Fractions of a second
// are rounded so that nothing opens early or closes late.
func (r requests) periods() (opened, closed schedule.Period) {
	openEnd, closeEnd := r.end(r.open), r.end(r.close)
	if !r.open.IsZero() && !r.close.IsZero() {
		if r.open.After(r.close) {
			closeEnd = earlier(closeEnd, r.open)
		} else {
			openEnd = earlier(openEnd, r.close)
		}
	}
	if !r.open.IsZero() {
		opened = span(roundUp(r.open), openEnd)
	}
	if !r.close.IsZero() {
		closed = span(r.close, roundUp(closeEnd))
	}
	return opened, closed
}

// span returns the period between two times, the empty one if there is nothing
// between them.
func span(from, until time.Time) schedule.Period {
	period, err := schedule.Dated("", from, until)
	if err != nil {
		return schedule.Period{}
	}
	return period
}

// earlier returns the earlier of two times, where zero in a stands for never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}

func roundUp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Second - 1).Truncate(time.Second)
}
