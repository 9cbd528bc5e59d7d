package schedule_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestCronWithHoursInRepeatedHour(t *testing.T) {
	for _, tt := range []coverage{
		{"a tick in the repeated hour happens once and first", cron("Europe/Oslo", "30 2 * * *", 10*time.Minute),
			"2026-10-24T12:00/2026-10-25T12:00", "2026-10-25T00:30/00:40"},
		{"every minute of the hour, which it names", cron("America/New_York", "* 1 * * *", time.Minute),
			"2026-11-01/12:00", "2026-11-01T05:00/06:00"},
		{"every minute of all hours, by name", cron("America/New_York", "* 0-23 * * *", time.Minute),
			"2026-11-01/12:00", "2026-11-01/06:00 2026-11-01T07:00/12:00"},
		{"a midnight that Newfoundland had twice ticked once", cron("America/St_Johns", "0 0 * * *", 10*time.Minute),
			"2006-10-28T12:00/2006-10-29T12:00", "2006-10-29T02:30/02:40"},
		{"the minutes around Newfoundland's two midnights", cron("America/St_Johns", "0-2 0 * * *", time.Minute),
			"2006-10-28T12:00/2006-10-29T12:00", "2006-10-29T02:30/02:31 2006-10-29T03:31/03:33"},
		{"the half hour that North Korea repeated in 2015", cron("Asia/Pyongyang", "*/15 23 * * *", time.Minute),
			"2015-08-14T14:20/20:00", "2015-08-14T14:30/14:31 2015-08-14T14:45/14:46"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestHourlyCronInRepeatedHour(t *testing.T) {
	for _, tt := range []coverage{
		{"frequent ticks go on while the hour is repeated", cron("Europe/Oslo", "*/30 * * * *", 10*time.Minute),
			"2026-10-25/02:30", "2026-10-25/00:10 2026-10-25T00:30/00:40 2026-10-25T01:00/01:10 2026-10-25T01:30/01:40 2026-10-25T02:00/02:10"},
		{"every other hour, and Oslo repeats one", cron("Europe/Oslo", "0 */2 * * *", 10*time.Minute),
			"2026-10-24T22:00/2026-10-25T05:00", "2026-10-24T22:00/22:10 2026-10-25/00:10 2026-10-25T01:00/01:10 2026-10-25T03:00/03:10"},
		{"every other hour, and New York repeats none", cron("America/New_York", "0 */2 * * *", 10*time.Minute),
			"2026-11-01T04:00/09:30", "2026-11-01T04:00/04:10 2026-11-01T07:00/07:10 2026-11-01T09:00/09:10"},
		{"every minute of a Sunday of 25 hours", cron("America/New_York", "* * * * SUN", time.Minute),
			"2026-10-31/2026-11-03", "2026-11-01T04:00/2026-11-02T05:00"},
		{"the last hour of a Thursday, which Cairo repeats", cron("Africa/Cairo", "30 * * * THU", 10*time.Minute),
			"2026-10-29T20:00/2026-10-30T12:00", "2026-10-29T20:30/20:40 2026-10-29T21:30/21:40"},
		{"Cairo's Friday, which begins after that", cron("Africa/Cairo", "30 * * * FRI", 10*time.Minute),
			"2026-10-29T12:00/23:00", "2026-10-29T22:30/22:40"},
		{"the minutes around Newfoundland's two midnights", cron("America/St_Johns", "0-2 * * * *", time.Minute),
			"2006-10-29T02:00/04:00", "2006-10-29T02:30/02:33 2006-10-29T03:30/03:33"},
		{"two hours that the Troll station repeats", cron("Antarctica/Troll", "0 */1 * * *", 10*time.Minute),
			"2026-10-24T23:00/2026-10-25T03:30", "2026-10-24T23:00/23:10 2026-10-25/00:10 2026-10-25T01:00/01:10 2026-10-25T02:00/02:10 2026-10-25T03:00/03:10"},
		{"half an hour that Lord Howe repeats", cron("Australia/Lord_Howe", "45 * * * *", 10*time.Minute),
			"2026-04-04T14:00/17:00", "2026-04-04T14:45/14:55 2026-04-04T15:15/15:25 2026-04-04T16:15/16:25"},
		{"full hours of Lord Howe, two of them an hour and a half from each other",
			cron("Australia/Lord_Howe", "0 * * * *", 59*time.Minute),
			"2026-04-04T14:00/16:30", "2026-04-04T14:00/14:59 2026-04-04T15:30/16:29"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// The borders of what cron daemons take for a star in the field of hours.
func TestStarHoursTickInBothOccurrences(t *testing.T) {
	first, both := []string{"05:30"}, []string{"05:30", "06:30"}
	for hours, want := range map[string][]string{
		"*": both, "*/1": both, "?": both, "?/1": both, "*,3": both, "*,1": both, "*/2,1": both, "*/23,1": both,
		"1": first, "0-23": first, "0-23/1": first, "1-23": first, "0/1": first, "1/2": first, "0,1,2": first, "3,*": first, "1,*/2": first,
	} {
		// With spaces before it, and a star in the field of minutes that says nothing.
		for _, expression := range []string{"30 " + hours + " * * *", " \t30  " + hours + " * * *", "*/30 " + hours + " 1 11 ?"} {
			plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{cron("America/New_York", expression, time.Minute)}})
			var got []string
			for i := range plan.Intervals(utc("2026-11-01T05:15:00Z"), utc("2026-11-01T06:45:00Z")) {
				if i.State == schedule.Opened && i.From.Minute() == 30 {
					got = append(got, i.From.Format("15:04"))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q ticks at %q, want %q", expression, got, want)
			}
		}
	}
}

// setBack has nights on which clocks are set back, for any reason.
var setBack = []struct{ zone, at string }{
	{"America/New_York", "2026-11-01T06:00:00Z"},
	{"Europe/Oslo", "2026-10-25T01:00:00Z"},
	{"Europe/Dublin", "2026-10-25T01:00:00Z"},
	{"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
	{"Antarctica/Troll", "2026-10-25T01:00:00Z"},
	{"Africa/Cairo", "2026-10-29T21:00:00Z"},
	{"Africa/Casablanca", "2026-02-15T02:00:00Z"},
	{"America/St_Johns", "2006-10-29T02:31:00Z"},
	{"America/Caracas", "2007-12-09T07:00:00Z"},
	{"Asia/Pyongyang", "2015-08-14T15:00:00Z"},
	{"Asia/Almaty", "2024-02-29T18:00:00Z"},
	{"Europe/Volgograd", "2020-12-26T22:00:00Z"},
}

func TestCronLastingUntilNextTickHasNoGap(t *testing.T) {
	for _, place := range setBack {
		for _, tt := range []struct {
			expression string
			duration   time.Duration
		}{
			{"* * * * *", time.Minute},
			{"*/30 * * * *", 30 * time.Minute},
			{"*/45 * * * *", 45 * time.Minute},
			{"0 * * * *", time.Hour},
			{"15 * * * *", time.Hour},
			{"59 ? ? ? ?", time.Hour},
			{"7,50 */1 * 1-12 *", 43 * time.Minute},
		} {
			t.Run(fmt.Sprintf("%s for %s in %s", tt.expression, tt.duration, place.zone), func(t *testing.T) {
				at := utc(place.at)
				closed := []schedule.Period{cron(place.zone, tt.expression, tt.duration)}
				plan := newPlan(schedule.Config{Default: schedule.Opened, ClosePeriods: closed})
				all := slices.Collect(plan.Intervals(at.AddDate(0, 0, -2), at.AddDate(0, 0, 2)))
				if len(all) != 1 || all[0].State != schedule.Closed {
					t.Errorf("it is not closed all the time: %v", all)
				}
				if d := plan.Decide(at.Add(-time.Second)); d.State != schedule.Closed || !d.Next.At.IsZero() {
					t.Errorf("before clocks are set back it is %+v", d)
				}
			})
		}
	}
}

func TestRestrictedCronLastingUntilNextTickClosesWholeDay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		place := rapid.SampledFrom([]struct{ zone, from, until string }{
			{"America/New_York", "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"},
			{"Europe/Oslo", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
			{"Africa/Cairo", "2026-10-28T21:00:00Z", "2026-10-29T22:00:00Z"},
		}).Draw(t, "place")
		day := utc(place.from).Add(12 * time.Hour).Format("2 1")
		step := rapid.SampledFrom([]int{1, 5, 15, 20, 30, 60}).Draw(t, "step")
		longer := time.Duration(rapid.IntRange(0, 90).Draw(t, "longer")) * time.Minute
		minutes := "0"
		if step < 60 {
			minutes = fmt.Sprintf("*/%d", step)
		}
		duration := time.Duration(step)*time.Minute + longer
		plan := newPlan(schedule.Config{Default: schedule.Opened, HardClosePeriods: []schedule.Period{
			cron(place.zone, fmt.Sprintf("%s * %s *", minutes, day), duration),
		}})
		from, until := utc(place.from), utc(place.until).Add(longer)
		all := slices.Collect(plan.Intervals(from.AddDate(0, 0, -1), until.AddDate(0, 0, 1)))
		if len(all) != 3 || !all[1].From.Equal(from) || !all[1].Until.Equal(until) || all[1].State != schedule.Closed {
			t.Fatalf("%s %s: %v, want closed from %s until %s", minutes, duration, all, from, until)
		}
	})
}
