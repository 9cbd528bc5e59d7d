package schedule

import (
	"context"
	"iter"
	"slices"
	"time"
)

// State is the state of a gate. The zero value is Closed.
type State uint8

// The states of a gate.
const (
	Closed State = iota
	Opened
)

// String returns "closed" or "opened", the words of the API.
func (s State) String() string {
	if s == Opened {
		return "opened"
	}
	return "closed"
}

// Reason is the rule that decided. The values are reasons of the condition Opened.
type Reason string

// The reasons in order of precedence. For hard periods, ClosePeriod comes before OpenRequested, and for others after it.
const (
	CloseRequested      Reason = "CloseRequested"
	ClosePeriod         Reason = "ClosePeriod"
	OpenRequested       Reason = "OpenRequested"
	NotYetActive        Reason = "NotYetActive"
	Expired             Reason = "Expired"
	ExceptionApplies    Reason = "Exception"
	OpenPeriod          Reason = "OpenPeriod"
	OutsideOpenPeriods  Reason = "OutsideOpenPeriods"
	OutsideClosePeriods Reason = "OutsideClosePeriods"
	Default             Reason = "Default"
)

// Config holds the inputs of a Plan.
type Config struct {
	// Default is the state if nothing else decides.
	Default State
	// NotBefore and NotAfter bound the time in which the gate may open without a request. Zero means no bound.
	NotBefore, NotAfter time.Time
	// OpenPeriods are the periods in which a gate that is closed by default is open.
	OpenPeriods []Period
	// ClosePeriods take precedence over open periods.
	ClosePeriods []Period
	// HardClosePeriods are close periods that an open request does not override.
	HardClosePeriods []Period
	// Open and Close are the intervals in which requests are in force. They must not overlap.
	Open, Close []Period
	// Exceptions are the exceptions of the schedule, in their order of precedence.
	Exceptions []Exception
	// Budget is spent on the leads of exceptions and on each search for transitions. Nil means a new budget of DecisionLookups.
	Budget *Budget
}

// Plan is a compiled schedule. It is not safe for concurrent use, because it caches its search. The zero value is always closed.
type Plan struct {
	layers  []layer
	rest    layer
	refused []string
	budget  *Budget
	// err is the reason why a search ended early, nil if none did.
	err error
}

// ever is the span that contains all instants.
var ever = span{always, never}

// Decision is the state of a gate at an instant.
type Decision struct {
	State  State
	Reason Reason
	// By is the name of the period or exception that decided, empty if none did.
	By string
	// Event is the name of the calendar event that decided, empty if none did.
	Event string
	// Until is the time when the reason may change, even if the state does not; zero if unknown.
	Until time.Time
	// Next is the next change of the state.
	Next Transition
	// Reached is the instant at which the search for Next ended because the budget was spent, zero if it was not spent.
	Reached time.Time
}

// Transition is a change of state.
type Transition struct {
	// At is zero if the state does not change for nine years, or if the search ended early.
	At     time.Time
	State  State
	Reason Reason
	// By and Event are as in a Decision.
	By, Event string
}

// Interval is an interval [From, Until) with one state. Reason, By and Event apply at its start.
type Interval struct {
	From, Until time.Time
	State       State
	Reason      Reason
	By, Event   string
}

// NewPlan compiles a plan.
func NewPlan(c Config) *Plan {
	if c.Budget == nil {
		c.Budget = NewBudget(context.Background(), DecisionLookups)
	}
	p := &Plan{rest: layer{state: c.Default, reason: Default}, budget: c.Budget}
	switch {
	case len(c.OpenPeriods) > 0 && c.Default == Closed:
		p.rest.reason = OutsideOpenPeriods
	case len(c.ClosePeriods)+len(c.HardClosePeriods) > 0 && c.Default == Opened:
		p.rest.reason = OutsideClosePeriods
	}
	p.add(Closed, CloseRequested, c.Close...)
	p.add(Closed, ClosePeriod, c.HardClosePeriods...)
	p.add(Opened, OpenRequested, c.Open...)
	if !c.NotBefore.IsZero() {
		p.add(Closed, NotYetActive, Period{form: formDated, start: always, end: c.NotBefore.Unix()})
	}
	if !c.NotAfter.IsZero() {
		p.add(Closed, Expired, Period{form: formDated, start: c.NotAfter.Unix(), end: never})
	}
	if len(c.Exceptions) > 0 {
		base := c
		base.Open, base.Close, base.Exceptions = nil, nil, nil
		p.addExceptions(NewPlan(base), c.Exceptions)
	}
	p.add(Closed, ClosePeriod, c.ClosePeriods...)
	p.add(Opened, OpenPeriod, c.OpenPeriods...)
	return p
}

func (p *Plan) add(state State, reason Reason, periods ...Period) {
	periods = slices.DeleteFunc(slices.Clone(periods), func(p Period) bool { return p.form == formEmpty })
	if len(periods) > 0 {
		p.layers = append(p.layers, layer{state: state, reason: reason, periods: periods, within: ever})
	}
}

// Err returns why a result of the plan is incomplete, nil if all are complete. It is a [BudgetError], or the error of the budget's context.
func (p *Plan) Err() error { return p.err }

// State returns the state at an instant. It is not subject to the budget.
func (p *Plan) State(at time.Time) State {
	m := p.at(at.Unix(), false, nil)
	return m.state
}

// Now returns the decision at now without Next. It is not subject to the budget.
func (p *Plan) Now(now time.Time) Decision {
	return p.at(now.Unix(), true, nil).decision()
}

// decision returns the decision for m. It does not set Next.
func (m moment) decision() Decision {
	event, until := m.event()
	return Decision{State: m.state, Reason: m.reason, By: m.by, Event: event, Until: instant(min(m.until, until))}
}

// Decide returns the decision at now. The budget limits only the search for Next.
func (p *Plan) Decide(now time.Time) Decision {
	t := now.Unix()
	m := p.at(t, true, nil)
	d := m.decision()
	next, reached := p.next(m, t+horizon)
	if d.Reached = instant(reached); next.start != never {
		d.Next = next.transition()
	}
	return d
}

// Transitions yields the changes of the state in the nine years after an instant, in order. If the budget is spent, it ends early, and Err
// returns the error.
func (p *Plan) Transitions(after time.Time) iter.Seq[Transition] {
	return func(yield func(Transition) bool) {
		t := after.Unix()
		for m, _ := p.next(p.at(t, true, nil), t+horizon); m.start != never; m, _ = p.next(m, t+horizon) {
			if !yield(m.transition()) {
				return
			}
		}
	}
}

// Intervals yields the states between two instants as contiguous intervals; neighbors have different states. If the budget is spent, the
// last interval ends where the search ended, and Err returns the error.
func (p *Plan) Intervals(from, until time.Time) iter.Seq[Interval] {
	return func(yield func(Interval) bool) {
		end := until.Unix()
		for m := p.at(from.Unix(), true, nil); m.start < end; {
			next, reached := p.next(m, end)
			event, _ := m.event()
			i := Interval{From: instant(m.start), Until: instant(min(next.start, reached, end)), State: m.state, Reason: m.reason, By: m.by, Event: event}
			if !yield(i) {
				return
			}
			m = next
		}
	}
}

// most bounds how many causes Causes returns, and mostEdges how many edges it checks to find them.
const (
	most      = 5
	mostEdges = 200
)

// Causes returns the parts of an interval that have different causes: the first part for each cause, and at most five.
func (p *Plan) Causes(i Interval) (causes []Interval) {
	end := i.Until.Unix()
	m := p.at(i.From.Unix(), true, nil)
	for edges := 0; m.start < end && edges < mostEdges && len(causes) < most; edges++ {
		event, until := m.event()
		until = min(until, m.until, end)
		c := Interval{From: instant(m.start), Until: instant(until), State: m.state, Reason: m.reason, By: m.by, Event: event}
		if !slices.ContainsFunc(causes, func(o Interval) bool { return o.Reason == c.Reason && o.By == c.By && o.Event == c.Event }) {
			causes = append(causes, c)
		}
		if p.isSpent(until) {
			break
		}
		m = p.at(until, true, p.budget)
	}
	return causes
}

// moment is the decision at the instant start. Its reason does not change before until, and its state does not change before flip.
type moment struct {
	start  int64
	state  State
	reason Reason
	by     string
	// period is the period that decides, nil if none does or if the decision has the name of the row.
	period *Period
	until  int64
	flip   int64
}

// event returns the name of the calendar event that decides, empty if none does, and the time until which decisions have that name.
func (m *moment) event() (name string, until int64) {
	if m.period == nil {
		return "", never
	}
	return m.period.eventAt(m.start)
}

// transition returns the change to the state of the moment.
func (m *moment) transition() Transition {
	event, _ := m.event()
	return Transition{At: instant(m.start), State: m.state, Reason: m.reason, By: m.by, Event: event}
}

// next returns the first moment after m that has a different state and starts before limit. If there is none, the start of the result is
// never. If the budget is spent, reached is the instant at which the search ended; otherwise, it is never.
func (p *Plan) next(m moment, limit int64) (next moment, reached int64) {
	next, reached = p.search(m, limit, p.budget)
	if reached != never {
		p.isSpent(reached)
		return next, reached
	}
	if next.start != never {
		next = p.at(next.start, true, p.budget)
	}
	return next, never
}

// rowsPerLookup is the number of unchanged rows that cost as much as one lookup.
const rowsPerLookup = 32

// search is like next, but only the start and the state of the returned moment are exact.
func (p *Plan) search(m moment, limit int64, b *Budget) (next moment, reached int64) {
	for state := m.state; m.state == state; m = p.at(m.flip, false, b) {
		switch {
		case m.flip >= limit:
			return moment{start: never}, never
		case b.spent():
			return moment{start: never}, m.flip
		}
		b.spend(len(p.layers) / rowsPerLookup)
	}
	return m, never
}

// isSpent returns whether the budget is spent. If so, it sets err, with edge as the end of the search.
func (p *Plan) isSpent(edge int64) bool {
	if !p.budget.spent() {
		return false
	}
	if p.err = p.budget.ctx.Err(); p.err == nil {
		p.err = &BudgetError{Reached: instant(edge)}
	}
	return true
}

// at returns the moment at an instant. It checks the rows of the decision table in order. A row that does not cover t may override a later
// row when it starts next. If both rows have the same state, this changes only the reason, so a search for the next change of state need
// not stop there.
//
// state and flip are always correct. The other fields are correct only if exact is set, see layer.find.
func (p *Plan) at(t int64, exact bool, b *Budget) moment {
	starts := [2]int64{never, never}
	for i := range p.layers {
		l := &p.layers[i]
		found := l.find(t, exact, b)
		if found.covered {
			return l.decide(t, found.edge, found.by, starts)
		}
		starts[l.state] = min(starts[l.state], found.edge)
	}
	return p.rest.decide(t, never, nil, starts)
}

func instant(t int64) time.Time {
	if t == never || t == always {
		return time.Time{}
	}
	return time.Unix(t, 0).UTC()
}
