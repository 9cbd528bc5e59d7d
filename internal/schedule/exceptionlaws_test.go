package schedule_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// deviation is a plan without exceptions, and an exception to add.
type deviation struct {
	subject
	exception exceptionSpec
	// inOpen and inClose are opened in the periods of the exception.
	inOpen, inClose *schedule.Plan
}

func drawDeviation(t *rapid.T) deviation {
	d := deviation{subject: drawSubject(t)}
	d.spec.exceptions = nil
	d.plan = newPlan(d.spec.config())
	d.deviate(t, drawException(t, d.now))
	return d
}

// deviate replaces the exception by one that is not broken.
func (d *deviation) deviate(t *rapid.T, e exceptionSpec) {
	e.broken, e.closes = false, false
	d.exception = e
	d.inOpen, d.inClose = newPlan(planSpec{windows: e.open}.config()), newPlan(planSpec{windows: e.close}.config())
	t.Logf("an exception is %s", e)
}

func drawException(t *rapid.T, around time.Time) exceptionSpec {
	made := random{intn: evenly(t), around: around, zones: []string{"Europe/Oslo", "UTC"}, count: 90}
	return made.exception()
}

// plainly leaves the rows above exceptions away.
func (d *deviation) plainly() {
	d.spec = planSpec{opened: d.spec.opened, windows: d.spec.windows, soft: d.spec.soft}
	d.plan = newPlan(d.spec.config())
}

// with is the plan with some exceptions.
func (d *deviation) with(exceptions ...exceptionSpec) *schedule.Plan {
	spec := d.spec
	spec.exceptions = exceptions
	return newPlan(spec.config())
}

func (d *deviation) changed(change func(e *exceptionSpec)) *schedule.Plan {
	e := d.exception
	change(&e)
	return d.with(e)
}

// covers returns whether an instant is in the periods of a plan while the exception is valid.
func (d *deviation) covers(periods *schedule.Plan, at time.Time) bool {
	return d.exception.validAt(at) && rule(periods, at).state == schedule.Opened
}

// instants returns some around the validity of the exception, among them those
// at which a plan changes and the moments just before.
func (d *deviation) instants(t *rapid.T, plans ...*schedule.Plan) []time.Time {
	from, until := d.exception.from.Add(-2*time.Hour), d.exception.until.Add(2*time.Hour)
	all := append(within(t, from, until), d.exception.from, d.exception.from.Add(-1), d.exception.until, d.exception.until.Add(-1))
	for _, plan := range append(plans, d.plan, d.inOpen, d.inClose) {
		edges := 0
		for v := range plan.Intervals(from, until) {
			if edges++; edges > 8 {
				break
			}
			all = append(all, v.From, v.From.Add(-1))
		}
	}
	return all
}

// ruling is a decision without what comes later.
type ruling struct {
	state  schedule.State
	reason schedule.Reason
	by     string
}

// rule does not look for the next change, which is what takes Decide its time.
func rule(plan *schedule.Plan, at time.Time) (r ruling) {
	for v := range plan.Intervals(at, at.Add(time.Second)) {
		return ruling{v.State, v.Reason, v.By}
	}
	panic("there is no interval")
}

// TestGateEditDoesNotReverseException gives one exception to Gates that differ in all that the exception does not leave to them.
func TestGateEditDoesNotReverseException(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeviation(t)
		d.plainly()
		d.exception.lead = 0
		other := d
		other.spec = drawSubject(t).spec
		other.plainly()
		plan, edited := d.with(d.exception), other.with(d.exception)
		for _, at := range d.instants(t, plan, edited) {
			if got, want := rule(edited, at), rule(plan, at); want.reason == schedule.ExceptionApplies && got != want {
				t.Fatalf("at %s it is %+v in the edited Gate, not %+v", at, got, want)
			}
		}
	})
}

// TestLongerLeadHoldsMore also verifies that a lead only holds back the state against its periods, and nothing that began
// before it.
func TestLongerLeadHoldsMore(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeviation(t)
		d.plainly()
		d.exception.rest = nil
		if brings := rapid.SampledFrom([]schedule.State{schedule.Closed, schedule.Opened}).Draw(t, "brings"); brings == schedule.Closed {
			d.exception.open, d.exception.close = nil, append(d.exception.close, d.exception.open...)
		} else {
			d.exception.open, d.exception.close = append(d.exception.open, d.exception.close...), nil
		}
		d.deviate(t, d.exception)
		against, periods := schedule.Opened, d.inClose
		if len(d.exception.open) > 0 {
			against, periods = schedule.Closed, d.inOpen
		}
		lead := time.Duration(rapid.IntRange(0, 48*60*60).Draw(t, "lead")) * time.Second
		more := time.Duration(rapid.IntRange(0, 12*60*60).Draw(t, "more")) * time.Second
		shorter := d.changed(func(e *exceptionSpec) { e.lead = lead })
		longer := d.changed(func(e *exceptionSpec) { e.lead = lead + more })
		runs := func(plan *schedule.Plan, at time.Time) bool { return rule(plan, at).state == against }
		for _, at := range d.instants(t, shorter, longer) {
			base, short, long := runs(d.plan, at), runs(shorter, at), runs(longer, at)
			switch {
			case long && !short, short && !base, short && d.covers(periods, at):
				t.Fatalf("at %s the schedule is %s: %t, with a lead %t, with a longer one %t", at, against, base, short, long)
			case base && !short && !d.covers(periods, at):
				checkHeld(t, &d, shorter, periods, against, lead, at)
			}
		}
	})
}

// checkHeld fails unless what is held at an instant started in the lead before a
// period that is to come, and is held from its start on.
func checkHeld(t *rapid.T, d *deviation, plan, periods *schedule.Plan, against schedule.State, lead time.Duration, at time.Time) {
	from := d.exception.from
	for v := range d.plan.Intervals(from.Add(-time.Second), at.Add(time.Second)) {
		if v.State == against {
			from = v.From
		}
	}
	if from.Before(d.exception.from) {
		t.Fatalf("at %s something is held that runs already at %s", at, from)
	}
	if rule(plan, from).state == against {
		t.Fatalf("at %s something is held that started at %s", at, from)
	}
	for v := range periods.Intervals(at, from.Add(lead+time.Second)) {
		if v.State == schedule.Opened && d.exception.validAt(v.From) {
			return
		}
	}
	t.Fatalf("at %s it is held since %s, which is not in the lead of a period", at, from)
}

func TestBrokenExceptionsClose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeviation(t)
		plan := d.with(d.exception)
		broken := d.changed(func(e *exceptionSpec) { e.broken, e.closes = true, rapid.Bool().Draw(t, "closes") })
		for _, at := range d.instants(t, plan, broken) {
			if rule(broken, at).state == schedule.Closed {
				continue
			}
			if rule(plan, at).state == schedule.Closed || rule(d.plan, at).state == schedule.Closed {
				t.Fatalf("at %s it is opened by a broken exception", at)
			}
		}
	})
}

// TestClosingExceptionOpensNothing adds one at any place among others. So it needs no approval.
func TestClosingExceptionOpensNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeviation(t)
		others := []exceptionSpec{drawException(t, d.now), drawException(t, d.now)}
		others[0].name, others[1].name = "y", "z"
		e := d.exception
		if e.close, e.open, e.rest = slices.Concat(e.close, e.open), nil, nil; len(e.close) == 0 {
			return
		}
		d.deviate(t, e)
		place := rapid.IntRange(0, len(others)).Draw(t, "place")
		without, with := d.with(others...), d.with(slices.Insert(slices.Clone(others), place, d.exception)...)
		for _, at := range append(d.instants(t, without, with), within(t, e.from, e.until)...) {
			if rule(with, at).state == schedule.Opened && rule(without, at).state == schedule.Closed {
				t.Fatalf("at %s it is opened by %+v, and closed by %+v without %s", at, rule(with, at), rule(without, at), d.exception)
			}
			if got := rule(with, at); place == 0 && d.covers(d.inClose, at) && got.state == schedule.Opened && got.reason == schedule.ExceptionApplies {
				t.Fatalf("at %s another exception wins over its close period: %+v", at, got)
			}
		}
	})
}

func TestBrokenExceptionOpensNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := drawDeviation(t)
		others := []exceptionSpec{drawException(t, d.now), drawException(t, d.now)}
		others[0].name, others[1].name = "y", "z"
		d.exception.broken, d.exception.closes = true, rapid.Bool().Draw(t, "closes")
		without, with := d.with(others...), d.with(append([]exceptionSpec{d.exception}, others...)...)
		for _, at := range append(d.instants(t, without, with), within(t, d.exception.from, d.exception.until)...) {
			if rule(with, at).state == schedule.Opened && rule(without, at).state == schedule.Closed {
				t.Fatalf("at %s it is opened by %+v, and closed by %+v without %s", at, rule(with, at), rule(without, at), d.exception)
			}
		}
	})
}
