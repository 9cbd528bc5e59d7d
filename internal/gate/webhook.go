package gate

import (
	"errors"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxSkew is how far ahead of ours the clock of another replica may be.
const maxSkew = time.Minute

// ErrUnhandled is returned for a Gate with a planned request that the controller has
// not seen yet: writing another one now would lose it.
var ErrUnhandled = errors.New("has a planned request that is still to be taken note of")

// ErrAhead is returned for a Gate with a handled request that is later than now: the
// clocks differ by more than maxSkew, and the controller would refuse what we write.
var ErrAhead = errors.New("has handled a request of a time that is still to come")

// WriteRequest puts a request into the annotations of a Gate as a person does it by
// hand. Its time is now, or just after all requests before it: which of two came
// later must not depend on whose clock is ahead.
func WriteRequest(g *v1alpha1.Gate, r Request, now time.Time) error {
	at := now.UTC().Truncate(time.Microsecond)
	after := func(last time.Time) {
		if !at.After(last) && !last.After(now.Add(maxSkew)) {
			at = last.Add(time.Microsecond)
		}
	}
	for _, m := range g.Status.Requests {
		if m.RequestedAt != nil {
			if m.RequestedAt.After(now.Add(maxSkew)) {
				return ErrAhead
			}
			after(m.RequestedAt.Time)
		}
		// Its annotation may be gone, and the same value is not handled twice.
		if last, ok := instantOf(m.LastHandled); ok {
			after(last)
		}
	}
	for _, a := range requestAnnotations {
		value := g.Annotations[a.requestedAt]
		planned, ok := instantOf(value)
		if !ok {
			continue
		}
		memory := memoryOf(g, a.action)
		unhandled := memory == nil || memory.LastHandled != value
		if a.action == r.Action && unhandled && planned.After(now.Add(maxSkew)) && planned.Sub(now) <= maxRequestDistance {
			return ErrUnhandled
		}
		after(planned)
	}
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	for _, a := range requestAnnotations {
		if a.action != r.Action {
			continue
		}
		g.Annotations[a.requestedAt] = FormatRequest(at, r.Window)
		g.Annotations[a.requestedBy] = r.By
		g.Annotations[a.reason] = r.Reason
		if r.Reason == "" {
			delete(g.Annotations, a.reason)
		}
	}
	return nil
}

// Requested returns the value of the annotation that requests an action.
func Requested(g *v1alpha1.Gate, action v1alpha1.RequestAction) string {
	for _, a := range requestAnnotations {
		if a.action == action {
			return g.Annotations[a.requestedAt]
		}
	}
	return ""
}

// instantOf returns the time in the value of an annotation.
func instantOf(value string) (time.Time, bool) {
	instant, _, _ := strings.Cut(value, windowSeparator)
	at, err := time.Parse(time.RFC3339Nano, instant)
	return at.Truncate(time.Microsecond), err == nil
}
