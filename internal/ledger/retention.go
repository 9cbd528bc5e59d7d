package ledger

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// covers returns whether r makes another close request of the same requester redundant, even if spec.window changes: r does not end
// earlier, and refuses every open request that the other one refuses. Close requests of other users are kept, so that they remain
// visible if a user withdraws one.
func (r *inForce) covers(other *inForce) bool {
	return r.Source == other.Source && r.RequestedBy == other.RequestedBy && (r.Unlimited || r.endsByWindow() == other.endsByWindow() && compareEnds(r.end, other.end) >= 0) &&
		!r.AcceptedAt.Before(&other.AcceptedAt) && !r.RequestedAt.Before(&other.RequestedAt)
}

// endsByWindow returns whether spec.window determines when a close request ends.
func (r *inForce) endsByWindow() bool { return r.Window == nil && !r.Unlimited }

// merge drops one close request if a source has more than maxCloses. Requests that end by spec.window form one group, and the others form
// another. From the larger group, merge drops the request that ends first, and gives its times to the next one if they are later. The next
// one then refuses at least as many open requests as before.
func (l *Ledger) merge(source string) {
	var byWindow, own []*inForce
	for _, s := range l.closes {
		switch {
		case s.Source != source:
		case s.endsByWindow():
			byWindow = append(byWindow, s)
		default:
			own = append(own, s)
		}
	}
	if len(own)+len(byWindow) <= maxCloses {
		return
	}
	if len(byWindow) > len(own) {
		own = byWindow
	}
	slices.SortStableFunc(own, func(a, b *inForce) int { return compareEnds(a.end, b.end) })
	first, next := own[0], own[1]
	if next.AcceptedAt.Before(&first.AcceptedAt) {
		next.AcceptedAt = first.AcceptedAt
	}
	if next.RequestedAt.Before(&first.RequestedAt) {
		next.RequestedAt = first.RequestedAt
		next.end = l.requestEnd(&next.AcceptedRequest)
	}
	l.closes = slices.DeleteFunc(l.closes, func(s *inForce) bool { return s == first })
	first.end = schedule.Earlier(first.end, next.RequestedAt.Time)
}

// compareEnds compares two ends. Zero means never, which is later than any other end.
func compareEnds(a, b time.Time) int {
	switch {
	case a.IsZero() && b.IsZero():
		return 0
	case a.IsZero():
		return 1
	case b.IsZero():
		return -1
	}
	return a.Compare(b)
}

// keepEnds stores the ends of requests in until, and returns whether it changed any. So a longer spec.window neither revives ended requests
// nor extends open requests in force.
func (l *Ledger) keepEnds(now time.Time) bool {
	kept := false
	for _, s := range l.begun {
		counts := s == l.open || slices.Contains(l.closes, s) && !now.Before(s.end)
		kept = counts && keepEnd(&s.AcceptedRequest, s.end) || kept
	}
	for _, s := range l.limited {
		counts := s.Action == v1alpha1.RequestOpen || !now.Before(s.end)
		kept = counts && keepEnd(&s.AcceptedRequest, s.end) || kept
	}
	for i := range l.planned {
		r := &l.planned[i]
		kept = r.Action == v1alpha1.RequestOpen && keepEnd(r, l.requestEnd(r)) || kept
	}
	for i := range l.waiting {
		kept = keepEnd(&l.waiting[i], l.deadline(&l.waiting[i])) || kept
	}
	return kept
}

// keepEnd sets until to end unless until is already that early, and returns whether it did. It ignores a zero end.
func keepEnd(r *v1alpha1.AcceptedRequest, end time.Time) bool {
	if end.IsZero() || r.Until != nil && !end.Before(r.Until.Time) {
		return false
	}
	until := metav1.NewMicroTime(end)
	r.Until = &until
	return true
}

// isStale returns whether the stored state of any request differs from its state at an instant.
func (l *Ledger) isStale(now time.Time) bool {
	return slices.ContainsFunc(slices.Concat(l.begun, l.limited), func(s *inForce) bool { return s.State != s.stateAt(now) })
}

// stateAt returns the state of a request that has begun.
func (r *inForce) stateAt(now time.Time) v1alpha1.RequestState {
	if r.EndedAt != nil || !r.lasts(now) {
		return v1alpha1.RequestEnded
	}
	return v1alpha1.RequestInForce
}

// save returns the requests to store, in this order: ended, in force or last, waiting for approval, planned.
func (l *Ledger) save(now time.Time) []v1alpha1.AcceptedRequest {
	last, endedAt := l.last(), time.Time{}
	var inForce, ended []v1alpha1.AcceptedRequest
	for _, s := range l.begun {
		if last.follows(s) {
			endedAt = schedule.Later(endedAt, s.EndedAt.Time)
		}
	}
	for _, s := range l.begun {
		s.State = s.stateAt(now)
		switch {
		case s == l.open || slices.Contains(l.closes, s):
			inForce = append(inForce, s.AcceptedRequest)
		// A request that another one has ended is kept while it may be in force by the clock of another replica.
		case last.follows(s) && (s.EndedAt.Time.Equal(endedAt) || s.lasts(now.Add(-MaxSkew))):
			ended = append(ended, s.AcceptedRequest)
		}
	}
	ended = ended[max(0, len(ended)-2*maxCloses):]
	return slices.Concat(ended, l.saveLimited(v1alpha1.RequestEnded, now), inForce, l.saveLimited(v1alpha1.RequestInForce, now), l.waiting, l.planned)
}
