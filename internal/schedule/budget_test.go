package schedule_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// busy returns a plan with an edge in each of a number of periods every minute, none of which changes the state before a close
// period begins in November 2026.
func busy(periods int, budget *schedule.Budget) *schedule.Plan {
	return schedule.NewPlan(schedule.Config{
		OpenPeriods: slices.Concat(
			slices.Repeat([]schedule.Period{cron("", "* 0-22 * * *", time.Minute)}, periods/2),
			slices.Repeat([]schedule.Period{cron("", "* 23 * * *", time.Minute)}, periods/2),
		),
		ClosePeriods: []schedule.Period{dated("soft", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")},
		Budget:       budget,
	})
}

func TestSpentBudgetKeepsStateWithoutTransition(t *testing.T) {
	now, end := utc("2026-06-01T00:00:00Z"), utc("2026-11-20T00:00:00Z")
	if d := busy(2, schedule.NewBudget(context.Background(), math.MaxInt)).Decide(now); !d.Next.At.Equal(end) || !d.Reached.IsZero() {
		t.Fatalf("with enough lookups: %+v", d)
	}
	for _, lookups := range []int{0, 1, 1_000, 10_000} {
		plan := busy(100, schedule.NewBudget(context.Background(), lookups))
		d := plan.Decide(now)
		if d.State != schedule.Opened || d.Reason != schedule.OpenPeriod || !d.Next.At.IsZero() || !d.Reached.After(now) || !d.Reached.Before(end) {
			t.Errorf("after %d lookups: %+v", lookups, d)
		}
		var spent *schedule.BudgetError
		if !errors.As(plan.Err(), &spent) || !spent.Reached.Equal(d.Reached) {
			t.Errorf("after %d lookups: %v, the decision reached %s", lookups, plan.Err(), d.Reached)
		}
		if d := plan.Decide(end); d.State != schedule.Closed || d.By != "soft" {
			t.Errorf("the present state needs no budget: %+v", d)
		}
	}
}

func TestIntervalsAndCausesEndWithBudget(t *testing.T) {
	now, end := utc("2026-06-01T00:00:00Z"), utc("2026-12-20T00:00:00Z")
	plan := busy(100, schedule.NewBudget(context.Background(), 5_000))
	all := slices.Collect(plan.Intervals(now, end))
	var spent *schedule.BudgetError
	if !errors.As(plan.Err(), &spent) || len(all) != 1 || !all[0].Until.Equal(spent.Reached) || !spent.Reached.After(now) {
		t.Errorf("%+v, %v", all, plan.Err())
	}
	if n := len(plan.Causes(all[0])); n != 1 {
		t.Errorf("%d causes without a budget", n)
	}
	for range plan.Transitions(now) {
		t.Error("a transition without a budget")
	}
}

func TestSearchEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	budget := schedule.NewBudget(ctx, math.MaxInt)
	plan := busy(100, budget)
	d := plan.Decide(utc("2026-06-01T00:00:00Z"))
	if d.State != schedule.Opened || !d.Next.At.IsZero() || !errors.Is(plan.Err(), context.Canceled) {
		t.Errorf("%+v, %v, %d lookups left", d, plan.Err(), budget.Left())
	}
}

// TestDecisionWorkIsBounded counts lookups: they take less than a microsecond each.
func TestDecisionWorkIsBounded(t *testing.T) {
	at := utc("2026-06-01T00:00:00Z")
	every := func(expression string) []schedule.Period {
		return slices.Repeat([]schedule.Period{cron("Europe/Oslo", expression, time.Minute)}, 100)
	}
	config := schedule.Config{OpenPeriods: every("*/2 * * * *"), ClosePeriods: every("*/2 * * * *"), Budget: schedule.NewBudget(context.Background(), schedule.DecisionLookups)}
	for i := range 20 {
		config.Exceptions = append(config.Exceptions, schedule.Exception{
			Name: string(rune('a' + i)), From: at.Add(time.Duration(i-10) * time.Hour), Until: at.AddDate(0, 0, 80), Lead: time.Hour, ClosePeriods: every("1-59/2 * * * *"),
		})
	}
	if d := schedule.NewPlan(config).Decide(at); d.State != schedule.Closed || d.Reached.IsZero() {
		t.Errorf("%+v", d)
	}
	const step = 3 * 100 // one more edge, at which all periods of three rows change
	if left := config.Budget.Left(); left > 0 || left < -step {
		t.Errorf("%d lookups are left", left)
	}
}

// TestRareDaysCostOneLookupPerEdge counts lookups: the longest search for a start covers 826 days.
func TestRareDaysCostOneLookupPerEdge(t *testing.T) {
	at := utc("2026-06-01T00:00:00Z")
	every := slices.Repeat([]schedule.Period{rarest()}, 50)
	for name, days := range map[string]periodSpec{
		"days of the month": {daysOfMonth: []int{31}}, "workdays": {workdays: []int{23}}, "every 26 weeks": {everyWeeks: schedule.MaxEveryWeeks, anchor: at},
		"the fifth Monday": {days: []time.Weekday{time.Monday}, weeks: []schedule.WeekOfMonth{schedule.Fifth}},
	} {
		days.name, days.zone, days.start, days.end = "p", "Europe/Oslo", "02:00", "05:00"
		budget := schedule.NewBudget(context.Background(), schedule.DecisionLookups)
		plan := schedule.NewPlan(schedule.Config{OpenPeriods: append(slices.Clone(every), days.compile()), ClosePeriods: every, Budget: budget})
		starts := 0
		for i := range plan.Intervals(at, at.AddDate(5, 0, 0)) {
			if i.State == schedule.Opened {
				starts++
			}
		}
		// 100 periods have an edge at most 6 times a year, one at most 12 times, each a start and an end.
		if spent := schedule.DecisionLookups - budget.Left(); starts == 0 || spent > 100*6*2*5+12*2*5 {
			t.Errorf("%s: %d lookups for %d intervals", name, spent, starts)
		}
	}
}

// TestSweepMatchesSingleDecisions compares a plan that stores where its periods were searched last with plans that are new for each
// instant, in time zones with all kinds of transitions.
func TestSweepMatchesSingleDecisions(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	zones := []string{"Europe/Oslo", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "UTC"}
	edges := 0
	for range 150 {
		zone := zones[r.IntN(len(zones))]
		around := aTransition(t, r, zone)
		making := random{intn: r.IntN, around: around, zones: []string{zone, zones[r.IntN(len(zones))]}}
		spec := making.plan()
		sweep := newPlan(spec.config())
		at := around.Add(-time.Duration(r.IntN(48)) * time.Hour)
		for i := range sweep.Intervals(at, at.AddDate(0, 0, 20)) {
			for at.Before(i.Until) && edges < 20_000 {
				d := newPlan(spec.config()).Decide(at)
				if at.Equal(i.From) && (d.Reason != i.Reason || d.By != i.By || d.Event != i.Event) || d.State != i.State {
					t.Fatalf("%+v\nat %s: %+v, but the interval is %+v", spec, at, d, i)
				}
				if got := sweep.Decide(at); got != d {
					t.Fatalf("%+v\nat %s: %+v, but a new plan decides %+v", spec, at, got, d)
				}
				if edges++; d.Until.IsZero() || d.Until.After(i.Until) {
					at = i.Until
				} else {
					at = d.Until
				}
			}
		}
	}
	if edges < 500 {
		t.Errorf("only %d edges", edges)
	}
}

// A row that was found before a close period began does not say which of its periods ends last when that is over.
func TestTransitionNamesPeriodEndingLast(t *testing.T) {
	plan := newPlan(schedule.Config{
		OpenPeriods:  []schedule.Period{cron("", "0 0 * * *", time.Hour), dated("longer", "2026-06-02T00:10:00Z", "2026-06-02T02:00:00Z")},
		ClosePeriods: []schedule.Period{dated("soft", "2026-06-02T00:20:00Z", "2026-06-02T00:45:00Z")},
	})
	var by []string
	for next := range plan.Transitions(utc("2026-06-01T12:00:00Z")) {
		if by = append(by, next.By); len(by) == 3 {
			break
		}
	}
	if !slices.Equal(by, []string{"cron", "soft", "longer"}) {
		t.Errorf("%q", by)
	}
}
