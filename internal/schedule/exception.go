package schedule

import (
	"slices"
	"time"
)

// ExceptionType says how an exception changes the schedule.
type ExceptionType uint8

// The types of exceptions, where S is the set of instants at which the plan
// without requests and exceptions is out of its default state, and E that of the
// windows of the exception.
const (
	// Extend is S ∪ E.
	Extend ExceptionType = iota
	// Suspend is S − E.
	Suspend
	// Replace is E.
	Replace
)

// Exception is a deviation from a schedule in [From, Until).
type Exception struct {
	// Name by which a decision names it.
	Name string
	Type ExceptionType
	// From and Until count in whole seconds.
	From, Until time.Time
	// Lead is for Suspend: an interval of S that would start in [e-Lead, e) before a
	// start e of E does not start before E ends. One that runs already when the lead
	// begins, or when the exception does, runs on until e.
	Lead time.Duration
	// Windows are E.
	Windows []Period
	// Broken means that Windows are not known. Such an exception opens nothing, and
	// closes whatever it could have closed.
	Broken bool
}

// closes returns whether the exception can close a plan with a default state.
func (e *Exception) closes(rest State) bool {
	return e.Type == Replace || (e.Type == Extend) == (rest == Opened)
}

// span is the interval [from, until).
type span struct {
	from, until int64
}

// addExceptions adds the rows of exceptions. At each instant the first of those
// that are valid then decides alone, as if there were no others.
func (p *Plan) addExceptions(base *Plan, exceptions []Exception) {
	var taken []span
	for i := range exceptions {
		e := &exceptions[i]
		valid := span{e.From.Unix(), e.Until.Unix()}
		rows := e.rows(base, valid)
		for _, free := range subtract(valid, taken) {
			for _, row := range rows {
				row.within = free
				p.layers = append(p.layers, row)
			}
		}
		taken = append(taken, valid)
	}
}

// rows returns the rows of the decision table that an exception puts before those
// of the schedule.
func (e *Exception) rows(base *Plan, valid span) []layer {
	rest, other := base.rest.state, 1-base.rest.state
	row := func(state State, periods ...Period) layer {
		return layer{state: state, reason: ExceptionApplies, by: e.Name, periods: slices.Clone(periods)}
	}
	throughout := Period{form: formDated, start: valid.from, end: valid.until}
	switch {
	case valid.from >= valid.until:
		return nil
	case e.Broken && e.closes(rest):
		return []layer{row(Closed, throughout)}
	case e.Broken:
		return nil
	case e.Type == Extend:
		return []layer{row(other, e.Windows...)}
	case e.Type == Suspend:
		return []layer{row(rest, append(slices.Clone(e.Windows), e.leads(base, valid)...)...)}
	}
	return []layer{row(other, e.Windows...), row(rest, throughout)}
}

// leads returns the stretches of S that do not start because of the lead, up to
// the windows that follow them.
func (e *Exception) leads(base *Plan, valid span) []Period {
	lead := int64(e.Lead / time.Second)
	if lead <= 0 {
		return nil
	}
	windows := layer{periods: e.Windows, within: valid}
	starts := windows.starts()
	var found []span
	for i, start := range starts {
		from := max(start-lead, valid.from)
		if i > 0 {
			from = max(from, starts[i-1])
		}
		// What runs at the instant before has not started in the lead.
		m := base.at(from - 1)
		for m = base.next(m, start, unlimited); m.start < start; m = base.next(m, start, unlimited) {
			if m.state == base.rest.state {
				continue
			}
			after, _ := slices.BinarySearch(starts, m.start+lead+1)
			end := base.next(m, starts[after-1], unlimited)
			found = append(found, span{m.start, min(end.start, starts[after-1])})
		}
	}
	if len(found) == 0 {
		return nil
	}
	return []Period{{form: formSpans, spans: found}}
}

// starts returns when the periods of a row start, those that start within another
// left out.
func (l *layer) starts() (all []int64) {
	for t := l.within.from; ; {
		covered, edge, _ := l.find(t)
		if covered {
			all = append(all, t)
		}
		for covered {
			t = edge
			covered, edge, _ = l.find(t)
		}
		if edge == never {
			return all
		}
		t = edge
	}
}

// subtract returns what is left of a span without others.
func subtract(from span, others []span) []span {
	left := []span{from}
	for _, o := range others {
		var next []span
		for _, s := range left {
			next = append(next, span{s.from, min(s.until, o.from)}, span{max(s.from, o.until), s.until})
		}
		left = slices.DeleteFunc(next, func(s span) bool { return s.from >= s.until })
	}
	return left
}

// findSpans returns as find does for sorted spans that do not overlap.
func (p *Period) findSpans(t int64) (bool, int64) {
	i, _ := slices.BinarySearchFunc(p.spans, t, func(s span, t int64) int {
		if s.until <= t {
			return -1
		}
		return 1
	})
	switch {
	case i == len(p.spans):
		return false, never
	case p.spans[i].from <= t:
		return true, p.spans[i].until
	}
	return false, p.spans[i].from
}
