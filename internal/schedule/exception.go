package schedule

import (
	"cmp"
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
	// closes all that it could have closed.
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
// that are valid then decides alone, as if there were no others. A broken one that
// has no rows, because it could only open, leaves the others all rows that close.
func (p *Plan) addExceptions(base *Plan, exceptions []Exception) {
	rows := p.rowsOf(base, exceptions)
	var taken [2][]span // from the rows of each state
	for i := range exceptions {
		valid := exceptions[i].valid()
		if valid.from >= valid.until {
			continue
		}
		left := [2][]span{Closed: subtract(valid, taken[Closed]), Opened: subtract(valid, taken[Opened])}
		for _, row := range rows[i] {
			for _, free := range left[row.state] {
				row.within = free
				p.layers = append(p.layers, row)
			}
		}
		taken[Opened] = take(taken[Opened], left[Opened])
		if len(rows[i]) > 0 {
			taken[Closed] = take(taken[Closed], left[Closed])
		}
	}
}

// take adds spans to others, none of which overlap, and sorts them.
func take(taken, more []span) []span {
	taken = append(taken, more...)
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return taken
}

// rowsOf returns the rows of each exception. Their leads share one budget, and the exceptions that begin first spend it
// first: one that applies is not refused because of a later one.
func (p *Plan) rowsOf(base *Plan, exceptions []Exception) [][]layer {
	order := make([]int, len(exceptions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(exceptions[a].From.Compare(exceptions[b].From), cmp.Compare(exceptions[a].Name, exceptions[b].Name))
	})
	left, rows := p.budget.part(leadLookups), make([][]layer, len(exceptions))
	for _, i := range order {
		var ok bool
		if rows[i], ok = exceptions[i].rows(base, left); !ok {
			p.isSpent(exceptions[i].From.Unix())
			p.refused = append(p.refused, exceptions[i].Name)
		}
	}
	return rows
}

func (e *Exception) valid() span { return span{e.From.Unix(), e.Until.Unix()} }

// Refused returns the names of the exceptions whose lead takes too long to compute:
// they, the schedule and other exceptions change too often. They are taken for
// broken.
func (p *Plan) Refused() []string { return p.refused }

// rows returns the rows of the decision table that an exception puts before those
// of the schedule, and false if they are those of a broken one because of its lead.
func (e *Exception) rows(base *Plan, budget *Budget) (rows []layer, ok bool) {
	valid := e.valid()
	rest, other := base.rest.state, 1-base.rest.state
	add := func(state State, periods ...Period) {
		rows = append(rows, layer{state: state, reason: ExceptionApplies, by: e.Name, periods: slices.Clone(periods)})
	}
	throughout := Period{form: formDated, start: valid.from, end: valid.until}
	leads, ok := newSweep(e, base, budget).leads()
	switch {
	case valid.from >= valid.until:
	case e.Broken || !ok:
		if e.closes(rest) {
			add(Closed, throughout)
		}
	case e.Type == Suspend:
		add(rest, append(slices.Clone(e.Windows), leads...)...)
	default:
		add(other, e.Windows...)
		if e.Type == Replace {
			add(rest, throughout)
		}
	}
	return rows, ok
}

// subtract returns what is left of a span without others, which are sorted and do not overlap.
func subtract(from span, others []span) (left []span) {
	for _, o := range others {
		switch {
		case o.until <= from.from:
		case o.from >= from.until:
			return append(left, from)
		default:
			if from.from < o.from {
				left = append(left, span{from.from, o.from})
			}
			if from.from = o.until; from.from >= from.until {
				return left
			}
		}
	}
	return append(left, from)
}
