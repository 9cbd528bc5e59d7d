package schedule

import (
	"iter"
	"math"
	"slices"
	"time"
)

// State of a gate. The zero value is Closed: what was never decided is shut.
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

// Reason says which rule decided. The words are those of the condition Opened.
type Reason string

// The reasons in order of precedence; ClosePeriod comes before OpenRequested
// for a hard period and after it for others.
const (
	CloseRequested      Reason = "CloseRequested"
	ClosePeriod         Reason = "ClosePeriod"
	OpenRequested       Reason = "OpenRequested"
	NotYetActive        Reason = "NotYetActive"
	Expired             Reason = "Expired"
	ExceptionApplies    Reason = "Exception"
	WindowOpen          Reason = "WindowOpen"
	OutsideWindows      Reason = "OutsideWindows"
	OutsideClosePeriods Reason = "OutsideClosePeriods"
	Default             Reason = "Default"
)

// Config is what a Plan is compiled from.
type Config struct {
	// Default state where nothing else decides.
	Default State
	// NotBefore and NotAfter bound the time in which the gate can be open by
	// itself; zero means unbounded.
	NotBefore, NotAfter time.Time
	// Windows in which a gate that is closed by default is open.
	Windows []Period
	// ClosePeriods in which the gate is closed although a window is open.
	ClosePeriods []Period
	// HardClosePeriods are close periods that an open request does not lift.
	HardClosePeriods []Period
	// Open and Close are the intervals in which a request of a person is in
	// force. They must not overlap.
	Open, Close []Period
	// Exceptions of the schedule. Where several are valid, the first decides.
	Exceptions []Exception
}

// Plan is a compiled schedule. It is immutable and safe for concurrent use. The
// zero value is closed for ever.
type Plan struct {
	layers  []layer
	rest    layer
	refused []string
}

// layer is one row of the decision table: where one of its periods covers an
// instant it decides, else the next row is asked.
type layer struct {
	state   State
	reason  Reason
	periods []Period
	// within bounds the periods.
	within span
	// by names the row. Empty, its periods have names of their own.
	by string
}

// ever is the span that bounds nothing.
var ever = span{always, never}

// Decision is the state of a gate at an instant.
type Decision struct {
	State  State
	Reason Reason
	// By names the period or the exception that decided, empty where none did.
	By string
	// Event names the event of a calendar that decided, empty where none did.
	Event string
	// Until is the instant from which on the reason may be another, the state
	// being the same or not; zero if that is not in sight.
	Until time.Time
	// Next is the next change of the state.
	Next Transition
}

// Transition is a change of state.
type Transition struct {
	// At is zero where no change is in sight, that is for nine years or for
	// ten thousand edges of periods that change nothing.
	At     time.Time
	State  State
	Reason Reason
	// By and Event are as in a Decision.
	By, Event string
}

// Interval is a stretch [From, Until) of one state. Reason, By and Event are those in
// force when it begins.
type Interval struct {
	From, Until time.Time
	State       State
	Reason      Reason
	By, Event   string
}

// NewPlan compiles a plan.
func NewPlan(c Config) *Plan {
	p := &Plan{rest: layer{state: c.Default, reason: Default}}
	switch {
	case len(c.Windows) > 0 && c.Default == Closed:
		p.rest.reason = OutsideWindows
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
	p.add(Opened, WindowOpen, c.Windows...)
	return p
}

func (p *Plan) add(state State, reason Reason, periods ...Period) {
	periods = slices.DeleteFunc(slices.Clone(periods), func(p Period) bool { return p.form == formEmpty })
	if len(periods) > 0 {
		p.layers = append(p.layers, layer{state: state, reason: reason, periods: periods, within: ever})
	}
}

// Decide returns the decision at now. It costs no allocation.
func (p *Plan) Decide(now time.Time) Decision {
	t := now.Unix()
	m := p.at(t)
	event, until := m.event()
	d := Decision{State: m.state, Reason: m.reason, By: m.by, Event: event, Until: instant(min(m.until, until))}
	edges := sight
	if next := p.next(m, t+horizon, &edges); next.start != never {
		d.Next = next.transition()
	}
	return d
}

// Transitions yields the changes of the state after an instant, in order. It looks as far
// ahead as a Decision does, for all of them together.
func (p *Plan) Transitions(after time.Time) iter.Seq[Transition] {
	return func(yield func(Transition) bool) {
		t, edges := after.Unix(), sight
		for m := p.next(p.at(t), t+horizon, &edges); m.start != never; m = p.next(m, t+horizon, &edges) {
			if !yield(m.transition()) {
				return
			}
		}
	}
}

// Intervals yields the states between two instants: contiguous from from to
// until, each neighbour different in state.
func (p *Plan) Intervals(from, until time.Time) iter.Seq[Interval] {
	return func(yield func(Interval) bool) {
		end, edges := until.Unix(), math.MaxInt
		for m := p.at(from.Unix()); m.start < end; {
			next := p.next(m, end, &edges)
			event, _ := m.event()
			i := Interval{From: instant(m.start), Until: instant(min(next.start, end)), State: m.state, Reason: m.reason, By: m.by, Event: event}
			if !yield(i) {
				return
			}
			m = next
		}
	}
}

// most bounds how many causes of an interval are returned, and mostEdges how many edges are looked at for them.
const (
	most      = 5
	mostEdges = 200
)

// Causes returns the parts of an interval that have different causes, each cause once, and at most five.
func (p *Plan) Causes(i Interval) (causes []Interval) {
	end := i.Until.Unix()
	m := p.at(i.From.Unix())
	for edges := 0; m.start < end && edges < mostEdges && len(causes) < most; edges++ {
		event, until := m.event()
		until = min(until, m.until, end)
		c := Interval{From: instant(m.start), Until: instant(until), State: m.state, Reason: m.reason, By: m.by, Event: event}
		if !slices.ContainsFunc(causes, func(o Interval) bool { return o.Reason == c.Reason && o.By == c.By && o.Event == c.Event }) {
			causes = append(causes, c)
		}
		m = p.at(until)
	}
	return causes
}

// moment is a decision at the instant start. The reason holds at least until
// until, the state at least until flip.
type moment struct {
	start  int64
	state  State
	reason Reason
	by     string
	// period decides, nil where none does or where it is not the one to name.
	period *Period
	until  int64
	flip   int64
}

// event returns the name of the event that decides, and until when that is the one.
func (m *moment) event() (name string, until int64) {
	if m.period == nil {
		return "", never
	}
	return m.period.eventAt(m.start)
}

// sight is how many edges a decision looks ahead. Periods can hide each other at
// every minute: without a bound a single gate could keep a processor busy.
const sight = 10_000

// transition returns the change of state that a moment is.
func (m *moment) transition() Transition {
	event, _ := m.event()
	return Transition{At: instant(m.start), State: m.state, Reason: m.reason, By: m.by, Event: event}
}

// next returns the first moment after m that differs from it in state, looking
// not further than limit and as many edges as are left. Without one its start is never.
func (p *Plan) next(m moment, limit int64, edges *int) moment {
	state := m.state
	for m.state == state {
		if m.flip >= limit || *edges == 0 {
			return moment{start: never}
		}
		m = p.at(m.flip)
		*edges--
	}
	return m
}

// at asks the rows of the decision table in their order. A row that does not
// cover t bounds the decision of a later row by its next start. Where both
// mean the same state it bounds the reason only, so that a search for the next
// change does not stop at every window of an expired gate.
func (p *Plan) at(t int64) moment {
	starts := [2]int64{never, never}
	for i := range p.layers {
		l := &p.layers[i]
		covered, edge, by := l.find(t)
		if covered {
			return l.decide(t, edge, by, starts)
		}
		starts[l.state] = min(starts[l.state], edge)
	}
	return p.rest.decide(t, never, nil, starts)
}

func (l *layer) decide(t, edge int64, by *Period, starts [2]int64) moment {
	m := moment{
		start: t, state: l.state, reason: l.reason, by: l.by,
		until: min(edge, starts[Closed], starts[Opened]),
		flip:  min(edge, starts[1-l.state]),
	}
	if l.by == "" && by != nil {
		m.by, m.period = by.name, by
	}
	return m
}

// find returns whether one of the periods covers t. If so, edge is the latest
// end of those that do and by is the one; if not, edge is the earliest start.
func (l *layer) find(t int64) (covered bool, edge int64, by *Period) {
	if t >= l.within.until {
		return false, never, nil
	}
	if t < l.within.from {
		if covered, edge, _ = l.find(l.within.from); covered {
			edge = l.within.from
		}
		return false, edge, nil
	}
	edge = never
	for i := range l.periods {
		c, e := l.periods[i].find(t)
		switch {
		case c && (!covered || e > edge):
			covered, edge, by = true, e, &l.periods[i]
		case !c && !covered:
			edge = min(edge, e)
		}
	}
	switch {
	case covered:
		edge = min(edge, l.within.until)
	case edge >= l.within.until:
		edge = never
	}
	return covered, edge, by
}

func instant(t int64) time.Time {
	if t == never || t == always {
		return time.Time{}
	}
	return time.Unix(t, 0).UTC()
}
