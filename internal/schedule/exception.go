package schedule

import (
	"cmp"
	"slices"
	"time"
)

// Exception is a deviation from a schedule in [From, Until). In that time, its close periods close the gate. Outside of them, its open
// periods open the gate, and outside of both, its Default decides. If none of them applies, the schedule decides, or the next exception if
// this one only closes.
type Exception struct {
	// Name is the name in decisions.
	Name string
	// Fractions of a second in From and Until are cut off.
	From, Until time.Time
	// OpenPeriods and ClosePeriods are cut to [From, Until).
	OpenPeriods, ClosePeriods []Period
	// Default is the state outside of both, nil if the schedule decides.
	Default *State
	// Lead suppresses changes of the schedule shortly before a period of the exception. It requires periods of one kind and no Default. Let s
	// be the start of such a period. If an interval of the schedule with the opposite state would start in [s-Lead, s), it does not start
	// before the period has ended. An interval that has started before the lead or before the exception continues until s.
	Lead time.Duration
	// Broken is true if the periods are unknown. If the exception may have been meant to close the gate, it keeps the gate closed throughout.
	// Otherwise it only prevents later exceptions from opening the gate.
	Broken bool
	// Closes is true if a broken exception may have been meant to close the gate, in addition to one with ClosePeriods or the Default Closed.
	Closes bool
}

// span is the interval [from, until).
type span struct {
	from, until int64
}

// addExceptions adds the rows of exceptions. At each instant, the first valid exception that does not only close decides, as if there
// were none after it. If it is broken and cannot close, the closing rows of later ones remain. The rows of an exception that only
// closes are added to those of the others, so that it never opens a gate that another exception keeps closed.
func (p *Plan) addExceptions(base *Plan, exceptions []Exception) {
	exceptions = slices.Clone(exceptions)
	leads := p.leads(base, exceptions)
	var taken [2][]span // the intervals that earlier exceptions decide, by state
	for i := range exceptions {
		e := &exceptions[i]
		valid := e.valid()
		if valid.from >= valid.until {
			continue
		}
		left := [2][]span{Closed: subtract(valid, taken[Closed]), Opened: subtract(valid, taken[Opened])}
		for _, row := range e.rows(leads[i]) {
			for _, free := range left[row.state] {
				row.within = free
				p.layers = append(p.layers, row)
			}
		}
		if e.onlyCloses() {
			continue
		}
		taken[Opened] = take(taken[Opened], left[Opened])
		if !e.Broken || e.mayClose() {
			taken[Closed] = take(taken[Closed], left[Closed])
		}
	}
}

// take adds spans to taken, and sorts them. The spans must not overlap.
func take(taken, more []span) []span {
	taken = append(taken, more...)
	slices.SortFunc(taken, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return taken
}

// leads returns the intervals that the lead of each exception suppresses. If a lead takes too long to compute, its exception becomes
// broken. The leads share one budget, which is spent in the order in which the exceptions begin, so that a future exception does not break
// the current one.
func (p *Plan) leads(base *Plan, exceptions []Exception) [][]Period {
	order := make([]int, len(exceptions))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(exceptions[a].From.Compare(exceptions[b].From), cmp.Compare(exceptions[a].Name, exceptions[b].Name))
	})
	left, leads := p.budget.part(leadLookups), make([][]Period, len(exceptions))
	for _, i := range order {
		e := &exceptions[i]
		var ok bool
		if leads[i], ok = newSweep(e, base, left).leads(); !ok {
			e.Broken = true
			p.isSpent(e.From.Unix())
			p.refused = append(p.refused, e.Name)
		}
	}
	return leads
}

// mayClose returns whether the exception closes the gate at some time, or may have been meant to if it is broken.
func (e *Exception) mayClose() bool {
	return e.Closes || len(e.ClosePeriods) > 0 || e.Default != nil && *e.Default == Closed
}

// onlyCloses returns whether the exception has close periods, and nothing else. A broken exception never only closes.
func (e *Exception) onlyCloses() bool {
	return !e.Broken && len(e.ClosePeriods) > 0 && len(e.OpenPeriods) == 0 && e.Default == nil
}

// leadState returns the state of the gate in the periods of an exception with a lead.
func (e *Exception) leadState() State {
	if len(e.OpenPeriods) > 0 {
		return Opened
	}
	return Closed
}

func (e *Exception) valid() span { return span{e.From.Unix(), e.Until.Unix()} }

// Refused returns the names of the exceptions whose lead takes too long to compute, because the schedule changes too often. These
// exceptions count as broken.
func (p *Plan) Refused() []string { return p.refused }

// rows returns the rows of the decision table for an exception, which precede those of the schedule.
func (e *Exception) rows(leads []Period) (rows []layer) {
	valid := e.valid()
	add := func(state State, periods ...Period) {
		if len(periods) > 0 {
			rows = append(rows, layer{state: state, reason: ExceptionApplies, by: e.Name, periods: slices.Clone(periods)})
		}
	}
	throughout := Period{form: formDated, start: valid.from, end: valid.until}
	switch {
	case e.Broken && e.mayClose():
		add(Closed, throughout)
	case !e.Broken:
		add(Closed, e.ClosePeriods...)
		add(Opened, e.OpenPeriods...)
		add(e.leadState(), leads...)
		if e.Default != nil {
			add(*e.Default, throughout)
		}
	}
	return rows
}

// subtract returns the parts of a span that are in none of the others. The others must be sorted and must not overlap.
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
