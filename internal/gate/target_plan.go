package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Scoped is an interval in which an exception or a request with targets determines the state of these targets, unless another
// one takes precedence.
type Scoped struct {
	schedule.Interval
	Targets []v1alpha1.TargetReference
}

// isRequested returns whether the interval is from a request.
func (s *Scoped) isRequested() bool { return requestedState(s.Reason) != "" }

// Scoped returns the intervals between two instants in which the exceptions and requests with targets determine the state of these targets.
// now determines which exceptions and requests count, and from may be earlier. Each exception, and the requests together, are followed
// through at most limit changes. If there are more, reached is the instant from which on intervals are missing, otherwise zero. There are
// no intervals if the spec of the Gate is invalid.
func (in *Snapshot) Scoped(now, from, until time.Time, limit int) (all []Scoped, reached time.Time) {
	compiled := in.compile()
	if len(compiled.errs) > 0 {
		return nil, reached
	}
	counts := counting(in.Gate, in.Exceptions, now)
	excess := timetable.Excess(counts)
	for _, e := range counts {
		if !e.HasTargets() || slices.Contains(excess, e) {
			continue
		}
		intervals, end := in.scopedException(e, from, until, limit)
		for _, i := range intervals {
			all = append(all, Scoped{i, e.Spec.Targets})
		}
		reached = schedule.Earlier(reached, end)
	}
	requested, end := in.scopedRequests(now, until, limit)
	return append(all, requested...), schedule.Earlier(reached, end)
}

// scopedException returns the intervals of an exception with targets, as Scoped does. There are none while something that wins over
// exceptions decides.
func (in *Snapshot) scopedException(e *v1alpha1.GateException, from, until time.Time, limit int) (all []schedule.Interval, end time.Time) {
	compiled := in.compile()
	opened, closed := ledger.Ahead(in.Gate).Periods(until)
	above, alone := compiled.Above(opened, closed), compiled.Alone(e)
	until = schedule.Earlier(until, e.Spec.ValidUntil.Time)
	for at, n := schedule.Later(from, e.Spec.ValidFrom.Time), 0; at.Before(until); n++ {
		if n == limit {
			return all, at
		}
		own := alone.Now(at)
		if own.Reason == schedule.Default {
			at = nextChange(at, until, own.Until)
			continue
		}
		wins := above.Now(at)
		next := nextChange(at, until, wins.Until)
		if wins.Reason == schedule.Default {
			next = nextChange(at, next, own.Until)
			i := schedule.Interval{From: at, Until: next, State: own.State, Reason: own.Reason, By: e.Name, Event: own.Event}
			if n := len(all); n > 0 && all[n-1].Until.Equal(at) && all[n-1].State == i.State && all[n-1].Event == i.Event {
				all[n-1].Until = next
			} else {
				all = append(all, i)
			}
		}
		at = next
	}
	return all, end
}

// scopedRequests returns the intervals of the requests with targets from now on, as Scoped does. The first interval of a request in force
// begins with the request. Between two changes, it uses the ledger of that time, because a planned request takes its targets out of others.
// Intervals of the same targets and the same state are merged.
func (in *Snapshot) scopedRequests(now, until time.Time, limit int) (all []Scoped, reached time.Time) {
	compiled := in.compile()
	for at, n := now, 0; at.Before(until); n++ {
		if n == limit {
			return all, at
		}
		requests := ledger.At(in.Gate, at)
		changes, current := []time.Time{requests.NextBegin()}, []Scoped(nil)
		for _, r := range requests.Limited(at) {
			plan := compiled.Requested(r.Action, r.Period)
			is := plan.Now(at)
			changes = append(changes, is.Until)
			if requestedState(is.Reason) == "" {
				continue
			}
			s := Scoped{schedule.Interval{From: at, State: is.State, Reason: is.Reason}, references(v1alpha1.RequestOverlayTargets(r.Targets))}
			if at.Equal(now) {
				for i := range plan.Intervals(schedule.Earlier(r.From, at), at.Add(time.Second)) {
					s.From = i.From
				}
			}
			current = append(current, s)
		}
		next := nextChange(at, until, changes...)
		for _, s := range current {
			i := slices.IndexFunc(all, func(o Scoped) bool {
				return !o.Until.Before(at) && o.State == s.State && equality.Semantic.DeepEqual(o.Targets, s.Targets)
			})
			if i < 0 {
				i, all = len(all), append(all, s)
			}
			all[i].From, all[i].Until = schedule.Earlier(all[i].From, s.From), next
		}
		at = next
	}
	return all, reached
}

// nextChange returns the first of the changes after an instant, at most until.
func nextChange(at, until time.Time, changes ...time.Time) time.Time {
	for _, change := range changes {
		if change.After(at) {
			until = schedule.Earlier(until, change)
		}
	}
	return until
}

// ForTarget returns the intervals of a Gate as they are for a target with scoped intervals. Requests take precedence over exceptions,
// and then closed takes precedence.
func ForTarget(gate []schedule.Interval, scoped []Scoped) (all []schedule.Interval) {
	var edges []time.Time
	for _, i := range gate {
		edges = append(edges, i.From, i.Until)
	}
	for _, i := range scoped {
		edges = append(edges, i.From, i.Until)
	}
	slices.SortFunc(edges, time.Time.Compare)
	edges = slices.CompactFunc(edges, time.Time.Equal)
	begins := make([]int, len(scoped))
	for i := range begins {
		begins[i] = i
	}
	slices.SortStableFunc(begins, func(a, b int) int { return scoped[a].From.Compare(scoped[b].From) })
	var current []int // the scoped intervals at an edge, in the order of scoped
	for n := 1; n < len(edges); n++ {
		at := edges[n-1]
		for len(gate) > 0 && !at.Before(gate[0].Until) {
			gate = gate[1:]
		}
		current = slices.DeleteFunc(current, func(i int) bool { return !at.Before(scoped[i].Until) })
		for ; len(begins) > 0 && !at.Before(scoped[begins[0]].From); begins = begins[1:] {
			current = append(current, begins[0])
		}
		if len(gate) == 0 || at.Before(gate[0].From) {
			continue // outside the range
		}
		slices.Sort(current)
		next, by := gate[0], (*Scoped)(nil)
		for _, i := range current {
			if s := &scoped[i]; by == nil || s.winsOver(by) {
				by = s
			}
		}
		if by != nil {
			next = by.Interval
		}
		next.From, next.Until = at, edges[n]
		if last := len(all) - 1; last >= 0 && all[last].State == next.State && all[last].By == next.By && all[last].Reason == next.Reason {
			all[last].Until = next.Until
			continue
		}
		all = append(all, next)
	}
	return all
}

// winsOver returns whether an interval takes precedence over one that comes before it in the list.
func (s *Scoped) winsOver(other *Scoped) bool {
	if s.isRequested() != other.isRequested() {
		return s.isRequested()
	}
	return s.State == schedule.Closed
}
