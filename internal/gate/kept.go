package gate

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// covers returns whether a close makes another one needless, now and after any change of
// spec.window: it lasts as long, and refuses each open that the other one refuses.
func (r *inForce) covers(other *inForce) bool {
	lasts := func(end, otherEnd time.Time) bool { return end.IsZero() || !otherEnd.IsZero() && !end.Before(otherEnd) }
	own := func(r *inForce) time.Time { return windowEnd(r.RequestedAt.Time, r.Window) }
	return r.Source == other.Source && lasts(r.end, other.end) && lasts(own(r), own(other)) &&
		!r.AcceptedAt.Before(&other.AcceptedAt) && !r.RequestedAt.Before(&other.RequestedAt)
}

// merge makes room if there are too many closes of a source: the one that is over first goes,
// and the one that is over next is as new as that was. So it refuses more, never less.
func (c *course) merge(source string) {
	var own []*inForce
	for _, s := range c.closes {
		if s.Source == source {
			own = append(own, s)
		}
	}
	if len(own) <= maxCloses {
		return
	}
	slices.SortStableFunc(own, func(a, b *inForce) int {
		switch {
		case b.outlasts(a):
			return -1
		case a.outlasts(b):
			return 1
		}
		return 0
	})
	first, next := own[0], own[1]
	if next.AcceptedAt.Before(&first.AcceptedAt) {
		next.AcceptedAt = first.AcceptedAt
	}
	c.closes = slices.DeleteFunc(c.closes, func(s *inForce) bool { return s == first })
}

// keepEnds notes when requests are over, and returns whether there is something new. What is
// over does not come back if somebody makes spec.window longer, and an open in force does
// not last longer for it.
func (c *course) keepEnds(now time.Time) bool {
	kept := false
	for _, s := range c.spans {
		counts := s == c.open || slices.Contains(c.closes, s) && !now.Before(s.end)
		if counts && !s.end.IsZero() && (s.Until == nil || s.end.Before(s.Until.Time)) {
			end := metav1.NewMicroTime(s.end)
			s.Until, kept = &end, true
		}
	}
	return kept
}

// save returns what is to be remembered: what is in force, or what was last, what that has
// ended, and what is planned.
func (c *course) save() []v1alpha1.AcceptedRequest {
	last := c.last()
	var all []v1alpha1.AcceptedRequest
	for _, s := range c.spans {
		if s == c.open || slices.Contains(c.closes, s) || last.follows(s) {
			all = append(all, s.AcceptedRequest)
		}
	}
	return append(all, c.planned...)
}
