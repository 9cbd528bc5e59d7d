package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// exceptionSpec is an exception before its periods are compiled.
type exceptionSpec struct {
	name        string
	from, until time.Time
	open, close []periodSpec
	rest        *schedule.State
	lead        time.Duration
	// closes counts only if the exception is broken.
	broken, closes bool
}

func (e exceptionSpec) String() string {
	rest := "none"
	if e.rest != nil {
		rest = e.rest.String()
	}
	return fmt.Sprintf("%s: from %s until %s, open %v, close %v, default %s, lead %s, broken %t, closes %t",
		e.name, e.from.Format(time.RFC3339), e.until.Format(time.RFC3339), e.open, e.close, rest, e.lead, e.broken, e.closes)
}

// compile returns the exception. A broken one may have lost its periods.
func (e exceptionSpec) compile() schedule.Exception {
	return schedule.Exception{
		Name: e.name, From: e.from, Until: e.until, OpenPeriods: compileAll(e.open), ClosePeriods: compileAll(e.close),
		Default: e.rest, Lead: e.lead, Broken: e.broken, Closes: e.closes,
	}
}

// state returns a pointer to a state.
func state(s schedule.State) *schedule.State { return &s }

// longestLead is the longest of those that are made up.
const longestLead = 36 * time.Hour

func (r *random) exception() exceptionSpec {
	r.count++
	e := exceptionSpec{name: fmt.Sprintf("x%d", r.count), from: r.minute()}
	e.until = e.from.Add(time.Duration(1+r.intn(6*24*60)) * time.Minute)
	e.open, e.close = r.periods(pick(r, 0, 1, 1, 2)), r.periods(pick(r, 0, 1, 1, 2))
	e.rest = pick(r, nil, nil, state(schedule.Closed), state(schedule.Opened))
	if r.chance(50) {
		r.giveLead(&e)
	}
	if r.chance(8) {
		e.broken, e.closes = true, r.chance(50)
		if r.chance(50) {
			e.open, e.close, e.rest = nil, nil, nil
		}
	}
	return e
}

// giveLead turns an exception into one that may have a lead.
func (r *random) giveLead(e *exceptionSpec) {
	periods := r.periods(pick(r, 1, 1, 2, 3))
	if e.open, e.close, e.rest = periods, nil, nil; r.chance(50) {
		e.open, e.close = nil, periods
	}
	e.lead = pick(r, 0, time.Minute, 10*time.Minute, time.Hour, 90*time.Minute, 6*time.Hour, 24*time.Hour, longestLead)
}

// model evaluates a plan minute by minute.
type model struct {
	spec planSpec
	// first is the minute with the index early; count minutes from there on are compared.
	first             int64
	early, count, all int
	// covered has the names of periods with the minutes that they cover.
	covered map[string][]bool
}

// newModel evaluates minutes from first on. For exceptions it evaluates more of them: back to before the first begins, and the length of a
// lead ahead.
func newModel(t *testing.T, spec planSpec, first int64, count int) *model {
	t.Helper()
	m := &model{spec: spec, first: first, count: count, covered: map[string][]bool{}}
	specs := [][]periodSpec{spec.hard, spec.soft, spec.windows}
	late := 0
	for _, e := range spec.exceptions {
		m.early = max(m.early, int(first-e.from.Unix()/60)+1)
		late = int(longestLead/time.Minute) + 1
		specs = append(specs, e.open, e.close)
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
	base := make([]schedule.State, m.all)
	for i := range base {
		base[i] = plain.table(m.minute(i), m.inside(i), nil).state
	}
	var all []verdict
	held := map[string][]bool{}
	for _, e := range m.spec.exceptions {
		held[e.name] = m.held(e, base)
	}
	for i := m.early; i < m.early+m.count; i++ {
		var valid []exceptionSpec
		for _, e := range m.spec.exceptions {
			if e.validAt(m.minute(i)) {
				valid = append(valid, e)
			}
		}
		all = append(all, m.spec.table(m.minute(i), m.inside(i), m.excepted(valid, held, i)))
	}
	return all
}

// excepted returns what the exceptions that are valid in a minute decide, nil if they leave it to the schedule.
func (m *model) excepted(valid []exceptionSpec, held map[string][]bool, i int) *verdict {
	blocked := false // by a broken one that cannot close
	for _, e := range valid {
		by := func(state schedule.State) *verdict {
			return &verdict{state: state, reason: schedule.ExceptionApplies, by: e.name}
		}
		inOpen, inClose := m.inside(i)(e.open), m.inside(i)(e.close)
		mayClose := e.closes || len(e.close) > 0 || e.rest != nil && *e.rest == schedule.Closed
		switch {
		case e.broken && mayClose:
			return by(schedule.Closed)
		case e.broken:
			blocked = true
			continue
		case inClose:
			return by(schedule.Closed)
		case inOpen && !blocked:
			return by(schedule.Opened)
		case held[e.name][i] && len(e.close) > 0:
			return by(schedule.Closed)
		case held[e.name][i] && !blocked:
			return by(schedule.Opened)
		case e.rest != nil && (*e.rest == schedule.Closed || !blocked):
			return by(*e.rest)
		case e.onlyCloses():
			continue
		}
		return nil
	}
	return nil
}

func (e exceptionSpec) onlyCloses() bool {
	return len(e.close) > 0 && len(e.open) == 0 && e.rest == nil
}

func (e exceptionSpec) validAt(at time.Time) bool { return !at.Before(e.from) && at.Before(e.until) }

// held returns the minutes of the base that the lead L of an exception holds back: a run against the state of its periods
// that starts in [max(e-L, From), e) before a start e of them waits until they are over.
func (m *model) held(e exceptionSpec, base []schedule.State) []bool {
	against := schedule.Opened
	if len(e.open) > 0 {
		against = schedule.Closed
	}
	covered, held := make([]bool, m.all), make([]bool, m.all)
	for i := range covered {
		covered[i] = e.validAt(m.minute(i)) && (m.inside(i)(e.open) || m.inside(i)(e.close))
	}
	for start := 1; start < m.all; start++ {
		if !covered[start] || covered[start-1] {
			continue
		}
		for s := max(1, start-int(e.lead/time.Minute)); s < start; s++ {
			if m.minute(s).Before(e.from) || base[s] != against || base[s-1] == against {
				continue
			}
			for i := s; i < start && base[i] == against; i++ {
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
