package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// exceptionSpec is an exception before its windows are compiled.
type exceptionSpec struct {
	name        string
	kind        schedule.ExceptionType
	from, until time.Time
	lead        time.Duration
	windows     []periodSpec
	broken      bool
}

func (e exceptionSpec) String() string {
	kind := [...]string{schedule.Extend: "extend", schedule.Suspend: "suspend", schedule.Replace: "replace"}[e.kind]
	return fmt.Sprintf("%s: %s from %s until %s, lead %s, broken %t, windows %v",
		e.name, kind, e.from.Format(time.RFC3339), e.until.Format(time.RFC3339), e.lead, e.broken, e.windows)
}

// longestLead is the longest of those that are made up.
const longestLead = 36 * time.Hour

func (r *random) exception() exceptionSpec {
	r.count++
	e := exceptionSpec{
		name: fmt.Sprintf("x%d", r.count), from: r.minute(),
		kind:    pick(r, schedule.Extend, schedule.Suspend, schedule.Suspend, schedule.Replace),
		windows: r.periods(pick(r, 0, 1, 1, 2, 3)),
		broken:  r.chance(8),
	}
	e.until = e.from.Add(time.Duration(1+r.intn(6*24*60)) * time.Minute)
	if e.kind == schedule.Suspend {
		e.lead = pick(r, 0, time.Minute, 10*time.Minute, time.Hour, 90*time.Minute, 6*time.Hour, 24*time.Hour, longestLead)
	}
	return e
}

// model looks at a plan minute by minute.
type model struct {
	spec planSpec
	// first is the minute with the index early; from there on that many count, of
	// all that are looked at.
	first             int64
	early, count, all int
	// covered has the names of periods with the minutes that they cover.
	covered map[string][]bool
}

// newModel looks at minutes from first on. For exceptions it sees more of them:
// those back to before the first begins, and those of a lead ahead.
func newModel(t *testing.T, spec planSpec, first int64, count int) *model {
	t.Helper()
	m := &model{spec: spec, first: first, count: count, covered: map[string][]bool{}}
	specs := [][]periodSpec{spec.hard, spec.soft, spec.windows}
	late := 0
	for _, e := range spec.exceptions {
		m.early = max(m.early, int(first-e.from.Unix()/60)+1)
		late = int(longestLead/time.Minute) + 1
		specs = append(specs, e.windows)
	}
	m.all = m.early + count + late
	begin := first - int64(m.early)
	clocks := map[string]*wallClock{}
	for _, some := range specs {
		for _, p := range some {
			if clocks[p.zone] == nil {
				clocks[p.zone] = watch(location(t, p.zone), begin-before, begin+int64(m.all)+after-settled)
			}
			l := &timeline{first: begin, edges: make([]int, m.all+1)}
			p.mark(l, clocks[p.zone])
			m.covered[p.name] = l.inside()
		}
	}
	return m
}

func (m *model) minute(i int) time.Time {
	return time.Unix((m.first+int64(i-m.early))*60, 0).UTC()
}

func (m *model) inside(i int) func(specs []periodSpec) bool {
	return func(specs []periodSpec) bool {
		for _, p := range specs {
			if m.covered[p.name][i] {
				return true
			}
		}
		return false
	}
}

// verdicts returns those from first on.
func (m *model) verdicts() []verdict {
	plain := m.spec
	plain.open, plain.close = [2]time.Time{}, [2]time.Time{}
	out := make([]bool, m.all)
	for i := range out {
		out[i] = plain.table(m.minute(i), m.inside(i), nil).state != m.spec.rest()
	}
	var said [][]*verdict
	for _, e := range m.spec.exceptions {
		said = append(said, m.say(e, out))
	}
	var all []verdict
	for i := m.early; i < m.early+m.count; i++ {
		var excepted *verdict
		blocked := false // by a broken one that could only open
		for k, e := range m.spec.exceptions {
			if !e.validAt(m.minute(i)) {
				continue
			}
			if e.broken && m.mayOnlyOpen(e) {
				blocked = true
				continue
			}
			if excepted = said[k][i]; blocked && excepted != nil && excepted.state == schedule.Opened {
				excepted = nil
				if e.kind == schedule.Replace && m.spec.rest() == schedule.Closed {
					excepted = &verdict{state: schedule.Closed, reason: schedule.ExceptionApplies, by: e.name}
				}
			}
			break
		}
		all = append(all, m.spec.table(m.minute(i), m.inside(i), excepted))
	}
	return all
}

func (s planSpec) rest() schedule.State {
	if s.opened {
		return schedule.Opened
	}
	return schedule.Closed
}

func (e exceptionSpec) validAt(at time.Time) bool { return !at.Before(e.from) && at.Before(e.until) }

func (m *model) mayOnlyOpen(e exceptionSpec) bool {
	return e.kind == schedule.Extend && !m.spec.opened || e.kind == schedule.Suspend && m.spec.opened
}

// say returns what an exception by itself says of each minute, nil where it
// leaves the schedule as it is, out being S of the design.
func (m *model) say(e exceptionSpec, out []bool) []*verdict {
	rest := m.spec.rest()
	windows := make([]bool, m.all)
	for i := range windows {
		windows[i] = e.validAt(m.minute(i)) && m.inside(i)(e.windows)
	}
	held := m.held(e, out, windows)
	said := make([]*verdict, m.all)
	for i := range said {
		state := rest
		switch {
		case !e.validAt(m.minute(i)):
			continue
		case e.broken && m.mayOnlyOpen(e):
			continue
		case e.broken:
			state = schedule.Closed
		case e.kind == schedule.Suspend && !windows[i] && !held[i]:
			continue
		case e.kind == schedule.Extend && !windows[i]:
			continue
		case e.kind != schedule.Suspend && windows[i]:
			state = 1 - rest
		}
		said[i] = &verdict{state: state, reason: schedule.ExceptionApplies, by: e.name}
	}
	return said
}

// held returns the minutes of S that do not start: an interval of S that starts
// in [max(e-L, From), e) before a start e of E waits for the end of that E.
func (m *model) held(e exceptionSpec, out, windows []bool) []bool {
	held := make([]bool, m.all)
	for start := 1; start < m.all; start++ {
		if !windows[start] || windows[start-1] {
			continue
		}
		for s := max(1, start-int(e.lead/time.Minute)); s < start; s++ {
			if m.minute(s).Before(e.from) || !out[s] || out[s-1] {
				continue
			}
			for i := s; i < start && out[i]; i++ {
				held[i] = true
			}
		}
	}
	return held
}

// verdictOf returns the verdict of a decision, by only where an exception decides.
func verdictOf(state schedule.State, reason schedule.Reason, by string) verdict {
	v := verdict{state: state, reason: reason}
	if reason == schedule.ExceptionApplies {
		v.by = by
	}
	return v
}
