package checker

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Request is a manual request on a Gate, in whole seconds.
type Request struct {
	Action v1alpha1.RequestAction
	// Value of the annotation.
	Value string
	// At is when it takes effect, and Window is its duration, zero for that of the Gate.
	At     time.Time
	Window time.Duration
	// AcceptedAt is when the controller recorded it, zero if that was at its time.
	AcceptedAt time.Time
	// Until is its final end in the status of the Gate, zero if that has none.
	Until time.Time

	// kept is true if the status still has it. Otherwise its end is unknown, and is derived from shortest, the shortest spec.window since
	// then, zero for none.
	kept     bool
	shortest time.Duration
}

// begins returns when a request takes effect: a planned one at its time, any other one once it is observed.
func (r Request) begins() time.Time {
	if r.AcceptedAt.After(r.At) {
		return r.AcceptedAt
	}
	return r.At
}

func (r Request) same(other Request) bool {
	return r.Action == other.Action && r.At.Equal(other.At) && r.Window == other.Window
}

// apart is how far apart the times of two requests must be to define their order if both were observed at once.
const apart = time.Minute

// inForce has the requests in force at an instant: an open request, or close requests.
type inForce struct {
	open   *Request
	closes []Request
	// ended are the requests that those in force have replaced.
	ended []Request
}

// at applies all accepted requests up to an instant, as if none had ever been dropped.
func (g *gate) at(instant time.Time) inForce {
	all := slices.Clone(g.requests)
	slices.SortStableFunc(all, func(a, b Request) int {
		return cmp.Or(a.begins().Compare(b.begins()), a.AcceptedAt.Compare(b.AcceptedAt), a.At.Compare(b.At), -cmp.Compare(a.Action, b.Action))
	})
	var s inForce
	for _, r := range all {
		if r.begins().After(instant) {
			break
		}
		switch {
		case r.Action == v1alpha1.RequestClose && s.open != nil:
			s = inForce{closes: []Request{r}, ended: []Request{*s.open}}
		case r.Action == v1alpha1.RequestClose:
			s.closes = append(s.closes, r)
		case slices.ContainsFunc(s.closes, func(c Request) bool { return r.begins().Before(g.end(c)) && outlives(c, r) }):
		case s.open != nil:
			s.open = &r
		default:
			s = inForce{open: &r, ended: s.closes}
		}
	}
	return s
}

// outlives returns whether a close request stays in force despite an open request.
func outlives(closed, open Request) bool {
	together := closed.AcceptedAt.Equal(open.AcceptedAt) && !closed.AcceptedAt.IsZero()
	return !open.At.After(closed.At) || closed.AcceptedAt.After(open.AcceptedAt) || together && open.At.Sub(closed.At) <= apart
}

// end returns when a request ends, a time in the far future for never.
func (g *gate) end(r Request) time.Time {
	end := r.At.Add(100 * 365 * 24 * time.Hour)
	window := lasting(g.Spec.Window)
	switch {
	case r.Action == v1alpha1.RequestClose && r.Window > 0:
		window = 0 // it has its own duration
	case !r.kept && r.shortest > 0:
		window = r.shortest
	}
	for _, d := range []time.Duration{window, r.Window} {
		if over := r.At.Add(d); d > 0 && over.Before(end) {
			end = over
		}
	}
	if !r.Until.IsZero() && r.Until.Before(end) {
		end = r.Until
	}
	return end
}

// last returns the request that is or was last in force: of several close requests the one that ends last, and of those with the same end
// the one with the latest time.
func (g *gate) last(s inForce) (Request, bool) {
	if s.open != nil {
		return *s.open, true
	}
	var last Request
	for _, r := range s.closes {
		if last.At.IsZero() || cmp.Or(g.end(r).Compare(g.end(last)), r.At.Compare(last.At)) >= 0 {
			last = r
		}
	}
	return last, !last.At.IsZero()
}

// endedEarly returns whether a request replaced one that would still be in force.
func (g *gate) endedEarly(s inForce, r Request) bool {
	return slices.ContainsFunc(s.ended, func(o Request) bool { return o.Action != r.Action && !g.end(o).Before(r.At) })
}

// reportedRequests has all requests that the status of a Gate has ever reported.
type reportedRequests struct {
	// handled are the handled values of annotations, accepted are the accepted requests.
	handled  map[string]bool
	accepted []Request
	// refused are the handled requests that were not accepted, and when that was.
	refused map[string]time.Time
	// windows are all values that spec.window has had.
	windows map[time.Duration]bool
}

// requests records the requests in a version of a Gate. If versions before it are missing, the requests that were refused in between are
// unknown.
func (h *History) requests(before, obj *unstructured.Unstructured, listed bool, at time.Time) {
	g, was := &v1alpha1.Gate{}, &v1alpha1.Gate{}
	if obj.GetKind() != v1alpha1.GateKind || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, g) != nil {
		return
	}
	if before != nil && runtime.DefaultUnstructuredConverter.FromUnstructured(before.Object, was) != nil {
		return
	}
	t := h.reported[g.UID]
	if t == nil {
		t = &reportedRequests{handled: map[string]bool{}, refused: map[string]time.Time{}, windows: map[time.Duration]bool{}}
		h.reported[g.UID] = t
	}
	t.accepts(g)
	for _, m := range g.Status.Memory.HandledRequests {
		key := fmt.Sprint(m.Action, " ", m.LastHandled)
		t.handled[key] = true
		isNew := !slices.ContainsFunc(was.Status.Memory.HandledRequests, func(o v1alpha1.HandledRequest) bool {
			return o.Action == m.Action && o.LastHandled == m.LastHandled
		})
		if isNew && !listed && !t.took(m) {
			t.refused[key] = at
		}
	}
}

// accepts records the accepted requests in a version of a Gate.
func (t *reportedRequests) accepts(g *v1alpha1.Gate) {
	window := lasting(g.Spec.Window)
	t.windows[window] = true
	for i := range t.accepted {
		t.accepted[i].kept = false
	}
	for _, r := range g.Status.Requests {
		accepted := Request{Action: r.Action, At: r.RequestedAt.Time, Window: lasting(r.Window), AcceptedAt: r.AcceptedAt.Time}
		i := slices.IndexFunc(t.accepted, func(o Request) bool { return o.same(accepted) && o.AcceptedAt.Equal(accepted.AcceptedAt) })
		if i < 0 {
			i = len(t.accepted)
			t.accepted = append(t.accepted, accepted)
		}
		t.accepted[i].kept = true
		if r.Until != nil {
			t.accepted[i].Until = r.Until.Time
		}
	}
	for i := range t.accepted {
		if shortest := &t.accepted[i].shortest; window > 0 && (*shortest == 0 || window < *shortest) {
			*shortest = window
		}
	}
}

// mayEnd returns whether the end of a request in the status matches one of the windows.
func (t *reportedRequests) mayEnd(r Request) bool {
	lasted := r.Until.Sub(r.At)
	return r.Until.IsZero() || lasted == r.Window || t.windows[lasted]
}

// took returns whether the last handled value of an annotation is that of an accepted request.
func (t *reportedRequests) took(m v1alpha1.HandledRequest) bool {
	same := func(at metav1.MicroTime, window time.Duration) bool {
		value := at.UTC().Format(time.RFC3339)
		return m.LastHandled == value && window == 0 || window > 0 && m.LastHandled == value+"/"+window.String()
	}
	return m.RequestedAt != nil && same(*m.RequestedAt, lasting(m.Window)) || slices.ContainsFunc(t.accepted, func(r Request) bool {
		return r.Action == m.Action && same(metav1.NewMicroTime(r.At), r.Window)
	})
}

func lasting(window *v1alpha1.Duration) time.Duration {
	if window == nil {
		return 0
	}
	return window.Duration
}

// requestsReportedBy returns all requests that the status of a Gate has ever reported.
func (h *History) requestsReportedBy(uid types.UID) reportedRequests {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.reported[uid]; t != nil {
		return reportedRequests{accepted: slices.Clone(t.accepted), refused: t.refused, windows: maps.Clone(t.windows)}
	}
	return reportedRequests{}
}

// outcomes checks the outcome of all requests on a Gate: the controller invented none, and refused none without a reason.
func (c *check) outcomes(g *gate, fail func(string, ...any)) {
	requested, t := c.log.Requests(g.UID), c.history.requestsReportedBy(g.UID)
	for _, r := range t.accepted {
		if !slices.ContainsFunc(requested, r.same) {
			fail("it has accepted a request to %s at %s that no client made", r.Action, r.At)
		}
		if !t.mayEnd(r) {
			fail("the request to %s at %s for %s ends at %s, which matches none of the windows %v", r.Action, r.At, r.Window, r.Until, t.windows)
		}
	}
	for _, r := range requested {
		at, refused := t.refused[fmt.Sprint(r.Action, " ", r.Value)]
		if refused && !g.mayRefuse(r, slices.Concat(t.accepted, g.overBefore(at, requested)), at) {
			fail("it has refused the request to %s of %s at %s, with accepted requests %v", r.Action, r.Value, at, t.accepted)
		}
	}
}

// overBefore returns the close requests that had ended at an instant. One that the controller has refused for that reason prevents a
// simultaneous open request from counting.
func (g *gate) overBefore(at time.Time, requested []Request) []Request {
	return slices.DeleteFunc(slices.Clone(requested), func(r Request) bool {
		return r.Action != v1alpha1.RequestClose || g.end(r).After(at)
	})
}

// mayRefuse returns whether there was a reason to refuse a request: it had ended or was old, or it was an open request not much later than
// a close request.
func (g *gate) mayRefuse(r Request, accepted []Request, at time.Time) bool {
	slack := time.Duration(0)
	if r.Action == v1alpha1.RequestClose {
		slack = apart
	}
	return g.end(r).Add(slack).Before(at.Add(time.Second)) || slices.ContainsFunc(accepted, func(o Request) bool {
		if o.Action == r.Action {
			// Flux may restore an old value of an open request.
			return r.At.Before(o.At.Add(-slack)) || o.same(r) && r.Action == v1alpha1.RequestOpen
		}
		return r.Action == v1alpha1.RequestOpen && !o.At.Add(apart).Before(r.At)
	})
}
