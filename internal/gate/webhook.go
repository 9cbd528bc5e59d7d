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
			after(m.RequestedAt.Time)
		}
	}
	for _, a := range requestAnnotations {
		value := g.Annotations[a.requestedAt]
		instant, _, _ := strings.Cut(value, windowSeparator)
		planned, err := time.Parse(time.RFC3339Nano, instant)
		if err != nil {
			continue
		}
		memory := memoryOf(g, a.action)
		unhandled := memory == nil || memory.LastHandled != value
		if a.action == r.Action && unhandled && planned.After(now.Add(maxSkew)) && planned.Sub(now) <= maxRequestDistance {
			return ErrUnhandled
		}
		after(planned.Truncate(time.Microsecond))
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
