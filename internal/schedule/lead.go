package schedule

import (
	"slices"
	"time"
)

// effort is how many times a period may be looked at to find what the leads of a
// plan hold back. It is enough for windows of every quarter of an hour over 90 days,
// and keeps the exceptions of one Gate from keeping a processor busy.
const effort = 250_000

// sweep goes once through the time in which an exception is valid and finds what
// its lead holds back.
type sweep struct {
	lead    int64
	base    *Plan
	windows layer
	// left is how many times a period may still be looked at.
	left *int
	// size is how many periods of the base each look at it costs.
	size int
}

func newSweep(e *Exception, base *Plan, left *int) *sweep {
	s := &sweep{base: base, windows: layer{periods: e.Windows, within: e.valid()}, left: left}
	if e.Type == Suspend && !e.Broken {
		s.lead = int64(e.Lead / time.Second)
	}
	for i := range base.layers {
		s.size += len(base.layers[i].periods)
	}
	return s
}

// leads returns the stretches of S that do not start because of the lead, up to
// the windows that follow them. It returns false if that takes too long.
func (s *sweep) leads() ([]Period, bool) {
	if s.lead <= 0 {
		return nil, true
	}
	var found []span
	starts := s.starts()
	for i, start := range starts {
		if *s.left -= s.size; *s.left < 0 {
			return nil, false
		}
		from := max(start-s.lead, s.windows.within.from)
		if i > 0 {
			from = max(from, starts[i-1])
		}
		// A run at the instant before has not started in the lead.
		m := s.next(s.base.at(from-1), start)
		for m.start < start {
			if m.state == s.base.rest.state {
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
		return nil, *s.left >= 0
	}
	return []Period{{form: formSpans, spans: found}}, *s.left >= 0
}

// next is that of the base, for as long as there is effort left.
func (s *sweep) next(m moment, limit int64) moment {
	for state := m.state; m.state == state; m = s.base.at(m.flip) {
		if *s.left -= s.size; m.flip >= limit || *s.left < 0 {
			return moment{start: never}
		}
	}
	return m
}

// starts returns when the windows start, those that start within another left out.
func (s *sweep) starts() (all []int64) {
	find := func(t int64) (bool, int64) {
		*s.left -= len(s.windows.periods)
		covered, edge, _ := s.windows.find(t)
		return covered, edge
	}
	for t := s.windows.within.from; *s.left >= 0; {
		covered, edge := find(t)
		if covered {
			all = append(all, t)
		}
		for covered && *s.left >= 0 {
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
