package schedule_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestExpensiveLeadIsRefusedAndCloses(t *testing.T) {
	from, until := utc("2026-06-01T00:00:00Z"), utc("2026-08-30T00:00:00Z")
	every := func(expression string, n int) []schedule.Period {
		return slices.Repeat([]schedule.Period{cron("UTC", expression, time.Minute)}, n)
	}
	for name, tc := range map[string]struct {
		windows, taken []schedule.Period
		lead           time.Duration
		refused        bool
	}{
		"a quarter of an hour, 90 days long":       {every("5/15 * * * *", 2), every("*/15 * * * *", 2), time.Hour, false},
		"all the time, and no lead":                {every("*/2 * * * *", 100), every("1/2 * * * *", 100), 0, false},
		"a hundred of every other minute":          {every("*/2 * * * *", 100), every("1/2 * * * *", 100), time.Minute, true},
		"the schedule alone is that busy":          {every("*/2 * * * *", 100), every("0 12 * * *", 1), 24 * time.Hour, true},
		"few of the schedule are that slow":        {every("0 0 29 2 *", 100), every("1/2 * * * *", 1), time.Minute, true},
		"the windows alone are that busy":          {every("0 12 * * *", 1), every("1/2 * * * *", 100), time.Minute, true},
		"a leap day that takes long to find":       {append(every("0 0 29 2 *", 99), every("*/2 * * * *", 1)...), every("0 12 * * *", 1), 24 * time.Hour, true},
		"a busy schedule and a lead that is short": {every("*/2 * * * *", 10), every("0 12 * * SAT", 1), time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			plan := newPlan(schedule.Config{OpenPeriods: tc.windows, Exceptions: []schedule.Exception{
				{Name: "x", From: from, Until: until, ClosePeriods: tc.taken, Lead: tc.lead},
			}})
			if got := slices.Equal(plan.Refused(), []string{"x"}); got != tc.refused || !got && len(plan.Refused()) > 0 {
				t.Fatalf("refused are %q", plan.Refused())
			}
			if !tc.refused {
				return
			}
			if d := plan.Decide(from); d.State != schedule.Closed || d.Reason != schedule.ExceptionApplies || d.By != "x" || !d.Until.Equal(until) {
				t.Errorf("got %+v", d)
			}
		})
	}
}

func TestExceptionsOfPlanShareBudget(t *testing.T) {
	at := func(day int) time.Time { return utc("2026-06-01T00:00:00Z").AddDate(0, 0, day) }
	exceptions := []schedule.Exception{}
	for i := range 10 { // the newest first, that is the last
		exceptions = append(exceptions, schedule.Exception{
			Name: string(rune('a' + 9 - i)), From: at(90 * (9 - i)), Until: at(90 * (10 - i)), Lead: time.Minute,
			ClosePeriods: []schedule.Period{cron("UTC", "1/16 * * * *", time.Minute)},
		})
	}
	refused := newPlan(schedule.Config{OpenPeriods: []schedule.Period{cron("UTC", "*/2 * * * *", time.Minute)}, Exceptions: exceptions}).Refused()
	if len(refused) == 0 || len(refused) == 10 || refused[0] == "a" || !slices.IsSorted(refused) || refused[len(refused)-1] != "j" {
		t.Errorf("refused are %q, want the last ones", refused)
	}
}
