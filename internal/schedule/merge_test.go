package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestAdjacentPeriodsMerge(t *testing.T) {
	days := func(name string, from, until int) schedule.Period {
		return dated(name, juneDay(from), juneDay(until))
	}
	windows := func(periods ...schedule.Period) schedule.Config {
		return schedule.Config{OpenPeriods: periods}
	}
	for _, tt := range []row{
		{"windows that touch", windows(days("first", 5, 7), days("second", 7, 9)), 5,
			"opened OpenPeriod by first until 7, then closed OutsideOpenPeriods on 9"},
		{"windows that overlap name the one that lasts longer", windows(days("first", 5, 8), days("second", 6, 9)), 6,
			"opened OpenPeriod by second until 9, then closed OutsideOpenPeriods on 9"},
		{"windows that overlap do so in any order", windows(days("second", 6, 9), days("first", 5, 8)), 6,
			"opened OpenPeriod by second until 9, then closed OutsideOpenPeriods on 9"},
		{"the first of windows that end together is named", windows(days("first", 5, 9), days("second", 6, 9)), 6,
			"opened OpenPeriod by first until 9, then closed OutsideOpenPeriods on 9"},
		{"a window inside of another", windows(days("outer", 4, 9), days("inner", 6, 7)), 6,
			"opened OpenPeriod by outer until 9, then closed OutsideOpenPeriods on 9"},
		{"a chain of windows", windows(days("d", 10, 12), days("a", 4, 6), days("c", 8, 10), days("b", 6, 8)), 4,
			"opened OpenPeriod by a until 6, then closed OutsideOpenPeriods on 12"},
		{"the next of windows to come is the earliest", windows(days("late", 10, 12), days("early", 4, 6)), 2,
			"closed OutsideOpenPeriods until 4, then opened OpenPeriod by early on 4"},
		{"the next of windows to come is the earliest in any order", windows(days("early", 4, 6), days("late", 10, 12)), 2,
			"closed OutsideOpenPeriods until 4, then opened OpenPeriod by early on 4"},
		{"windows of another form that touch",
			windows(cron("", "0 0 5 6 *", 48*time.Hour), weekly("", "00:00", "24:00", time.Sunday)), 5,
			"opened OpenPeriod by cron until 7, then closed OutsideOpenPeriods on 8"},
		{"close periods that touch",
			schedule.Config{
				Default:      schedule.Opened,
				ClosePeriods: []schedule.Period{days("first", 5, 7), days("second", 7, 9)},
			},
			6, "closed ClosePeriod by first until 7, then opened OutsideClosePeriods on 9"},
		{"a soft close period that goes on where a hard one ends",
			schedule.Config{
				Default:          schedule.Opened,
				ClosePeriods:     []schedule.Period{days("soft", 5, 9)},
				HardClosePeriods: []schedule.Period{days("hard", 4, 6)},
			},
			5, "closed ClosePeriod by hard until 6, then opened OutsideClosePeriods on 9"},
		{"a close period that covers a whole window hides it",
			schedule.Config{
				OpenPeriods:  []schedule.Period{days("hidden", 6, 7), days("seen", 10, 11)},
				ClosePeriods: []schedule.Period{days("soft", 5, 8)},
			},
			1, "closed OutsideOpenPeriods until 5, then opened OpenPeriod by seen on 10"},
		{"a window that begins where a close period does is not seen",
			schedule.Config{
				OpenPeriods:  []schedule.Period{days("window", 6, 9)},
				ClosePeriods: []schedule.Period{days("soft", 6, 8)},
			},
			5, "closed OutsideOpenPeriods until 6, then opened OpenPeriod by window on 8"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestEmptyPeriodsChangeNothing(t *testing.T) {
	var empty schedule.Period
	c := june()
	c.OpenPeriods = append([]schedule.Period{empty}, c.OpenPeriods...)
	c.ClosePeriods = append([]schedule.Period{empty}, c.ClosePeriods...)
	c.HardClosePeriods = append([]schedule.Period{empty}, c.HardClosePeriods...)
	got, want := newPlan(c), schedule.NewPlan(june())
	for d := 1; d <= 30; d++ {
		at := utc(juneDay(d))
		if got.Decide(at) != want.Decide(at) {
			t.Errorf("on the %d it is %q, want %q", d, words(got.Decide(at)), words(want.Decide(at)))
		}
	}
}

func TestPlanDoesNotAliasConfig(t *testing.T) {
	c := june()
	plan := newPlan(c)
	before := plan.Decide(utc(juneDay(12)))
	c.ClosePeriods[0] = schedule.Period{}
	if after := plan.Decide(utc(juneDay(12))); after != before {
		t.Errorf("%q became %q", words(before), words(after))
	}
}

func TestZeroPlanIsAlwaysClosed(t *testing.T) {
	for name, plan := range map[string]*schedule.Plan{
		"the zero plan":           {},
		"the plan of zero config": newPlan(schedule.Config{}),
	} {
		t.Run(name, func(t *testing.T) {
			for _, at := range []time.Time{{}, time.Unix(0, 0), utc("2026-06-01T00:00:00Z"), utc("9999-12-31T23:59:59Z")} {
				d := plan.Decide(at)
				if d.State != schedule.Closed || d.By != "" || !d.Until.IsZero() || d.Next != (schedule.Transition{}) {
					t.Errorf("at %s it is %+v", at, d)
				}
			}
		})
	}
}

func TestDecideCountsWholeSeconds(t *testing.T) {
	c := schedule.Config{
		Default:   schedule.Opened,
		NotBefore: utc("2026-06-01T00:00:00.7Z"),
		NotAfter:  utc("2026-06-02T00:00:00.7Z"),
	}
	plan := newPlan(c)
	for _, tt := range []struct {
		name, at string
		want     schedule.State
	}{
		{"the second before notBefore", "2026-05-31T23:59:59.999Z", schedule.Closed},
		{"the second that notBefore lies in", "2026-06-01T00:00:00Z", schedule.Opened},
		{"the second before notAfter", "2026-06-01T23:59:59.999Z", schedule.Opened},
		{"the second that notAfter lies in", "2026-06-02T00:00:00.1Z", schedule.Closed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := plan.Decide(utc(tt.at)).State; got != tt.want {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestNextSearchesNineYearsAhead(t *testing.T) {
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{
		dated("far", "2050-01-01T00:00:00Z", "2050-01-02T00:00:00Z"),
	}})
	if d := plan.Decide(utc("2030-01-01T00:00:00Z")); !d.Next.At.IsZero() || !d.Until.Equal(utc("2050-01-01T00:00:00Z")) {
		t.Errorf("twenty years ahead: %+v", d)
	}
	if d := plan.Decide(utc("2042-01-01T00:00:00Z")); !d.Next.At.Equal(utc("2050-01-01T00:00:00Z")) {
		t.Errorf("eight years ahead: %+v", d)
	}
}

func TestNextSearchesBeyondTicksOfCron(t *testing.T) {
	for _, expression := range []string{"* * * * *", "* * * 1-11 *"} {
		plan := newPlan(schedule.Config{
			OpenPeriods:  []schedule.Period{cron("", expression, time.Minute)},
			ClosePeriods: []schedule.Period{dated("soft", "2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z")},
		})
		if d := plan.Decide(utc("2026-01-01T00:00:00Z")); !d.Next.At.Equal(utc("2026-11-20T00:00:00Z")) {
			t.Errorf("%s: %+v", expression, d)
		}
	}
}

// The night to 2026-03-29 has no 02:30 in Oslo, and what began there would end
// before it.
func TestUntilIsNoEdgeOfEmptyInterval(t *testing.T) {
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{
		weekly("Europe/Oslo", "02:30", "03:00", time.Sunday),
	}})
	d := plan.Decide(utc("2026-03-28T12:00:00Z"))
	if want := utc("2026-04-05T00:30:00Z"); !d.Until.Equal(want) || !d.Next.At.Equal(want) {
		t.Errorf("%+v, want %s", d, want)
	}
}

func TestStateUsesAPIValues(t *testing.T) {
	var zero schedule.State
	if zero.String() != "closed" || schedule.Closed.String() != "closed" || schedule.Opened.String() != "opened" {
		t.Errorf("%s, %s, %s", zero, schedule.Closed, schedule.Opened)
	}
}
