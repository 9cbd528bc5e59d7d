package controllers_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const misread = "'0 2 1-7 * SUN' starts on each day whose day of month is 1-7 OR whose day of week is SUN, as always in cron. " +
	"For days that are both, such as the first Sunday of a month, use a weekly period with daysOfWeek and weeksOfMonth"

// cronPeriods returns a period for each schedule, named a, b and so on.
func cronPeriods(schedules ...string) (periods []v1alpha1.Period) {
	for i, schedule := range schedules {
		periods = append(periods, v1alpha1.Period{Name: string(rune('a' + i)), Schedule: &schedule, Duration: duration(hour)})
	}
	return periods
}

func TestAmbiguousSchedulesAreReportedOncePerGeneration(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.OpenPeriods = cronPeriods("0 2 * * SUN") })
	w.Reconcile(g)
	reported := func() []string { return w.Events.Take("AmbiguousSchedule") }
	expectNone(t, reported())

	w.Edit(g, func() { g.Spec.OpenPeriods = cronPeriods("0 2 1-7 * SUN") })
	w.Reconcile(g)
	equal(t, reported(), []string{"Warning Gate/production AmbiguousSchedule: open period 'a': " + misread})
	w.In(hour)
	w.Open(g, start)
	w.Reconcile(g)
	w.ResetState()
	w.Reconcile(g)
	expectNone(t, reported())

	w.Edit(g, func() {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: cronPeriods("", "", "0 0 13 * FRI")[2]}, {Period: cronPeriods("", "", "", "0 0 13 * SAT")[3]}}
	})
	w.Reconcile(g)
	equal(t, reported(), []string{"Warning Gate/production AmbiguousSchedule: open period 'a': " + misread + "; 2 more periods have such schedules"})

	e := w.exception("hotfix", openingIt, 2*hour, 3*hour, func(e *v1alpha1.GateException) { e.Spec.OpenPeriods = cronPeriods("0 2 1-7 * SUN") })
	w.reportOn(e)
	equal(t, reported(), []string{
		"Warning GateException/hotfix AmbiguousSchedule: open period 'a': " + misread,
		"Warning Gate/production AmbiguousSchedule: GateException 'hotfix': open period 'a': " + misread,
	})
	w.reportOn(e)
	w.In(2 * hour) // it begins
	w.reportOn(e)
	expectNone(t, reported())
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(4 * hour) })
	w.reportOn(e)
	equal(t, len(reported()), 2)
}
