package schedule

import (
	"slices"
	"time"
)

// sweep walks once through the validity of an exception, and finds the intervals that its lead suppresses. In these intervals, the state of
// base is the opposite of state.
type sweep struct {
	lead    int64
	state   State
	base    *Plan
	periods layer
	budget  *Budget
}

func newSweep(e *Exception, base *Plan, budget *Budget) *sweep {
	periods := layer{periods: slices.Concat(e.ClosePeriods, e.OpenPeriods), within: e.valid()}
	s := &sweep{state: e.leadState(), base: base, periods: periods, budget: budget}
	if !e.Broken {
		s.lead = int64(e.Lead / time.Second)
	}
	return s
}

// leads returns the intervals of the schedule that the lead suppresses, each up to the start of the period that follows. It returns false
// if the budget is spent before all are found.
func (s *sweep) leads() ([]Period, bool) {
	if s.lead <= 0 {
		return nil, true
	}
	var found []span
	starts := s.starts()
	for i, start := range starts {
		if s.budget.spent() {
			return nil, false
		}
		from := max(start-s.lead, s.periods.within.from)
		if i > 0 {
			from = max(from, starts[i-1])
		}
		// An interval that covers the instant before from has started before the lead.
		m := s.next(s.base.at(from-1, false, s.budget), start)
		for m.start < start {
			if m.state == s.state {
				m = s.next(m, start)
				continue
			}
			after, _ := slices.BinarySearch(starts, m.start+s.lead+1)
			end := s.next(m, starts[after-1])
			found = append(found, span{m.start, min(end.start, starts[after-1])})
			m = end
		}
	}
	if len(found) == 0 {
		return nil, !s.budget.spent()
	}
	return []Period{{form: formSpans, spans: found}}, !s.budget.spent()
}

// next returns the first moment of the base after m with a different state. It searches up to limit and within the budget, see Plan.search.
func (s *sweep) next(m moment, limit int64) moment {
	next, _ := s.base.search(m, limit, s.budget)
	return next
}

// starts returns the starts of the periods, except those within another period.
func (s *sweep) starts() (all []int64) {
	find := func(t int64) (bool, int64) {
		found := s.periods.find(t, false, s.budget)
		return found.covered, found.edge
	}
	for t := s.periods.within.from; !s.budget.spent(); {
		covered, edge := find(t)
		if covered {
			all = append(all, t)
		}
		for covered && !s.budget.spent() {
			t = edge
			covered, edge = find(t)
		}
		if edge == never {
			break
		}
		t = edge
	}
	return all
}
