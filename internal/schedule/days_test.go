package schedule_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// monthly returns a weekly period that does not start in all weeks of a month.
func monthly(zone, start, end string, weeks []schedule.WeekOfMonth, days ...time.Weekday) schedule.Period {
	return periodSpec{name: "monthly", zone: zone, days: days, weeks: weeks, start: start, end: end}.compile()
}

func TestWeeksOfMonth(t *testing.T) {
	of := func(weeks ...schedule.WeekOfMonth) []schedule.WeekOfMonth { return weeks }
	for _, tt := range []coverage{
		{"the first Sunday is one of the days 1 to 7, and the next may be 35 days away",
			monthly("", "10:00", "12:00", of(schedule.First), time.Sunday),
			"2026-10-01/2027-02-10", "2026-10-04T10:00/12:00 2026-11-01T10:00/12:00 2026-12-06T10:00/12:00 2027-01-03T10:00/12:00 2027-02-07T10:00/12:00"},
		{"the second and the third Tuesday are days 8 to 21",
			monthly("", "10:00", "12:00", of(schedule.Third, schedule.Second), time.Tuesday),
			"2026-09-01/2026-10-15", "2026-09-08T10:00/12:00 2026-09-15T10:00/12:00 2026-10-13T10:00/12:00"},
		{"the last Friday is the fifth where there is one, and the fourth where there is none",
			monthly("", "10:00", "12:00", of(schedule.Last), time.Friday),
			"2026-10-01/2026-12-01", "2026-10-30T10:00/12:00 2026-11-27T10:00/12:00"},
		{"the fourth Friday is not the fifth", monthly("", "10:00", "12:00", of(schedule.Fourth), time.Friday),
			"2026-10-01/2026-12-01", "2026-10-23T10:00/12:00 2026-11-27T10:00/12:00"},
		{"a day that is the fourth and the last counts once",
			monthly("", "10:00", "12:00", of(schedule.Fourth, schedule.Last), time.Friday),
			"2026-10-01/2026-12-01", "2026-10-23T10:00/12:00 2026-10-30T10:00/12:00 2026-11-27T10:00/12:00"},
		{"a leap day is among the last seven days of its month",
			monthly("", "10:00", "12:00", of(schedule.Last), time.Tuesday, time.Wednesday),
			"2028-02-01/2028-03-01", "2028-02-23T10:00/12:00 2028-02-29T10:00/12:00"},
		{"the month is that of the day on which it starts, although it ends in the next",
			monthly("", "22:00", "05:00", of(schedule.Last), time.Saturday),
			"2026-10-25/2026-11-28", "2026-10-31T22:00/2026-11-01T05:00"},
		{"the month is that of the zone: it begins half a day earlier in Auckland",
			monthly("Pacific/Auckland", "00:00", "01:00", of(schedule.First), time.Sunday),
			"2026-10-20/2026-11-20", "2026-10-31T11:00/12:00"},
		{"all days of the first week, around the clock, end on the eighth", monthly("", "00:00", "24:00", of(schedule.First)),
			"2026-10-20/2026-12-05", "2026-11-01/2026-11-08 2026-12-01/2026-12-05"},
		{"the first to the fourth week, around the clock, leave out what is after day 28",
			monthly("", "00:00", "24:00", of(schedule.First, schedule.Second, schedule.Third, schedule.Fourth)),
			"2027-01-20/2027-03-31", "2027-01-20/2027-01-29 2027-02-01/2027-03-29"},
		{"all weeks, around the clock, never end",
			monthly("", "00:00", "24:00", of(schedule.First, schedule.Second, schedule.Third, schedule.Fourth, schedule.Last)),
			"2026-10-20/2029-12-05", "2026-10-20/2029-12-05"},
		{"a last Sunday that a gap swallows is passed over, up to the last one of the next month",
			monthly("Europe/Oslo", "02:30", "03:00", of(schedule.Last), time.Sunday),
			"2026-02-23/2026-05-01", "2026-04-26T00:30/01:00"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDaysOfMonth(t *testing.T) {
	made := func(zone string, p periodSpec) schedule.Period {
		p.name, p.zone, p.start, p.end = "p", zone, "10:00", "12:00"
		return p.compile()
	}
	at := func(dates ...string) string { return strings.Join(dates, "T10:00/12:00 ") + "T10:00/12:00" }
	for _, tt := range []coverage{
		{"the 1st, the 15th and the last day", made("", periodSpec{daysOfMonth: []int{1, 15, -1}}),
			"2028-02-01/2028-03-15", at("2028-02-01", "2028-02-15", "2028-02-29", "2028-03-01")},
		{"a month without the day has none", made("", periodSpec{daysOfMonth: []int{31}}),
			"2027-01-01/2027-06-01", at("2027-01-31", "2027-03-31", "2027-05-31")},
		{"the 31st day from the end", made("", periodSpec{daysOfMonth: []int{-31}}),
			"2027-01-01/2027-06-01", at("2027-01-01", "2027-03-01", "2027-05-01")},
		{"a day that is both the 28th and the last counts once", made("", periodSpec{daysOfMonth: []int{28, -1}}),
			"2027-02-01/2027-03-30", at("2027-02-28", "2027-03-28")},
		{"the last workday", made("", periodSpec{workdays: []int{-1}}),
			"2026-10-01/2027-02-15", at("2026-10-30", "2026-11-30", "2026-12-31", "2027-01-29")},
		{"the first and the second workday", made("", periodSpec{workdays: []int{2, 1}}),
			"2026-11-01/2027-01-31", at("2026-11-02", "2026-11-03", "2026-12-01", "2026-12-02", "2027-01-01", "2027-01-04")},
		{"the 23rd workday is in few months", made("", periodSpec{workdays: []int{23}}),
			"2026-11-01/2027-10-01", at("2026-12-31", "2027-03-31")},
		{"275 days from a 23rd workday to the next", made("", periodSpec{workdays: []int{23}}),
			"2027-03-31/2027-12-31T13:00", at("2027-03-31", "2027-12-31")},
		{"the fifth Friday", made("", periodSpec{days: []time.Weekday{time.Friday}, weeks: []schedule.WeekOfMonth{schedule.Fifth}}),
			"2026-10-01/2027-05-01", at("2026-10-30", "2027-01-29", "2027-04-30")},
		{"every second Tuesday, also before the anchor",
			made("", periodSpec{days: []time.Weekday{time.Tuesday}, everyWeeks: 2, anchor: utc("2026-12-25T00:00:00Z")}),
			"2026-11-20/2027-01-10", at("2026-11-24", "2026-12-08", "2026-12-22", "2027-01-05")},
		{"a week begins on Monday",
			made("", periodSpec{days: []time.Weekday{time.Sunday, time.Monday}, everyWeeks: 2, anchor: utc("2026-12-27T00:00:00Z")}),
			"2026-12-20/2027-01-12", at("2026-12-21", "2026-12-27", "2027-01-04", "2027-01-10")},
		{"all days of every 26th week", made("", periodSpec{everyWeeks: 26, anchor: utc("1969-12-29T00:00:00Z")}),
			"1970-06-28/1970-07-02", at("1970-06-29", "1970-06-30", "1970-07-01")},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestAllDaysOfMonthNeverEnd(t *testing.T) {
	p := periodSpec{name: "p", start: "00:00", end: "24:00"}
	for d := 1; d <= 31; d++ {
		p.daysOfMonth = append(p.daysOfMonth, d)
	}
	coverage{"", p.compile(), "2026-10-20/2029-12-05", "2026-10-20/2029-12-05"}.run(t)
}

// TestDaysOverYears compares with a model that checks every day. No zone skips its times of day.
func TestDaysOverYears(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := periodSpec{
			name:  "p",
			zone:  rapid.SampledFrom([]string{"UTC", "Europe/Oslo", "America/Los_Angeles", "Pacific/Auckland"}).Draw(t, "zone"),
			days:  rapid.SliceOfNDistinct(rapid.SampledFrom(append(slices.Clone(weekdays), time.Saturday, time.Sunday)), 1, 3, rapid.ID).Draw(t, "days"),
			weeks: rapid.SliceOfNDistinct(rapid.SampledFrom([]schedule.WeekOfMonth{schedule.First, schedule.Second, schedule.Third, schedule.Fourth, schedule.Fifth, schedule.Last}), 1, 4, rapid.ID).Draw(t, "weeks"),
			start: "10:00", end: "12:00",
		}
		signed := func(most int) []int {
			return rapid.SliceOfNDistinct(rapid.IntRange(-most, most).Filter(func(n int) bool { return n != 0 }), 1, 4, rapid.ID).Draw(t, "numbers")
		}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 1:
			p.days, p.weeks, p.daysOfMonth = nil, nil, signed(31)
		case 2:
			p.days, p.weeks, p.workdays = nil, nil, signed(23)
		case 3:
			p.weeks, p.everyWeeks = nil, rapid.IntRange(2, schedule.MaxEveryWeeks).Draw(t, "every")
			p.anchor = time.Unix(86400*rapid.Int64Range(-40000, 90000).Draw(t, "anchor"), 0).UTC()
		}
		loc, err := tz.Load(p.zone)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(rapid.IntRange(1970, 2190).Draw(t, "year"), 1, 1, 0, 0, 0, 0, loc)
		until := from.AddDate(3, 0, 0)
		var want []string
		for d := from; d.Before(until); d = d.AddDate(0, 0, 1) {
			on := time.Date(d.Year(), d.Month(), d.Day(), 10, 0, 0, 0, time.UTC)
			if weeklyMatcher(p)(on) {
				want = append(want, fmt.Sprint(time.Date(d.Year(), d.Month(), d.Day(), 10, 0, 0, 0, loc).UTC()))
			}
		}
		plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{p.compile()}})
		var got []string
		for i := range plan.Intervals(from, until) {
			if i.State == schedule.Opened {
				got = append(got, fmt.Sprint(i.From))
				if i.Until.Sub(i.From) != 2*time.Hour {
					t.Fatalf("%s lasts from %s until %s", p, i.From, i.Until)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s starts at\n%s, want\n%s", p, got, want)
		}
	})
}
