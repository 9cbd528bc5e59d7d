package gate

import (
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// ScopedIntervals returns the intervals between two instants in which an exception with targets determines their state, if no other
// exception does. now determines which exceptions count. There are none while something that wins over exceptions decides, and none if the
// exception does not count, exceeds the limit, or the spec of the Gate is invalid. At most limit intervals are returned, and the last one may
// be cut off.
func (in *Snapshot) ScopedIntervals(e *v1alpha1.GateException, now, from, until time.Time, limit int) (all []schedule.Interval) {
	compiled := in.compile()
	counts := counting(in.Gate, in.Exceptions, now)
	if !e.HasTargets() || len(compiled.errs) > 0 || !slices.Contains(counts, e) || slices.Contains(timetable.Excess(counts), e) {
		return nil
	}
	opened, closed := ledger.Ahead(in.Gate).Periods(until)
	above, alone := compiled.Above(opened, closed), compiled.Alone(e)
	until = schedule.Earlier(until, e.Spec.ValidUntil.Time)
	for at := schedule.Later(from, e.Spec.ValidFrom.Time); at.Before(until) && len(all) < limit; {
		wins, own := above.Now(at), alone.Now(at)
		next := until
		for _, change := range []time.Time{wins.Until, own.Until} {
			if change.After(at) {
				next = schedule.Earlier(next, change)
			}
		}
		if wins.Reason == schedule.Default && own.Reason != schedule.Default {
			i := schedule.Interval{From: at, Until: next, State: own.State, Reason: own.Reason, By: e.Name, Event: own.Event}
			if n := len(all); n > 0 && all[n-1].Until.Equal(at) && all[n-1].State == i.State && all[n-1].Event == i.Event {
				all[n-1].Until = next
			} else {
				all = append(all, i)
			}
		}
		at = next
	}
	return all
}

// ForTarget returns the intervals of a Gate as they are for a target with scoped intervals, those of one exception after the other. Among
// them, closed wins.
func ForTarget(gate []schedule.Interval, scoped ...[]schedule.Interval) (all []schedule.Interval) {
	var edges []time.Time
	for _, intervals := range append(scoped, gate) {
		for _, i := range intervals {
			edges = append(edges, i.From, i.Until)
		}
	}
	slices.SortFunc(edges, time.Time.Compare)
	edges = slices.CompactFunc(edges, time.Time.Equal)
	at := func(intervals []schedule.Interval, at time.Time) *schedule.Interval {
		if i := slices.IndexFunc(intervals, func(i schedule.Interval) bool { return !at.Before(i.From) && at.Before(i.Until) }); i >= 0 {
			return &intervals[i]
		}
		return nil
	}
	for n := 1; n < len(edges); n++ {
		is := at(gate, edges[n-1])
		if is == nil {
			continue // outside the range
		}
		var by *schedule.Interval
		for k := range scoped {
			if s := at(scoped[k], edges[n-1]); s != nil && (by == nil || s.State == schedule.Closed) {
				by = s
			}
		}
		if by != nil {
			is = by
		}
		next := *is
		next.From, next.Until = edges[n-1], edges[n]
		if last := len(all) - 1; last >= 0 && all[last].State == next.State && all[last].By == next.By && all[last].Reason == next.Reason {
			all[last].Until = next.Until
			continue
		}
		all = append(all, next)
	}
	return all
}
