package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// suspended is a plan of open periods that an exception with a lead closes.
func suspended(lead time.Duration, e []schedule.Period, windows ...schedule.Period) schedule.Config {
	x := closing(e...)
	x.Lead = lead
	return schedule.Config{OpenPeriods: windows, Exceptions: []schedule.Exception{x}}
}

func one(from, until string) []schedule.Period {
	return []schedule.Period{hours("e", from, until)}
}

func TestClosePeriodsOfExceptionsWithLead(t *testing.T) {
	saturday := []schedule.Period{weekly("", "21:00", "02:00", time.Saturday)}
	for _, tt := range []course{
		{"a base that would start in the lead waits for the end",
			suspended(time.Hour, saturday, weekly("", "20:00", "08:00")), "6 12:00", "7 12:00", "6 12:00 -OutsideOpenPeriods, 20:00 -x, 7 02:00 +weekly, 08:00 -OutsideOpenPeriods"},
		{"a base that runs before the lead runs on until the start, and resumes at the end",
			suspended(time.Hour, saturday, weekly("", "18:00", "08:00")), "6 12:00", "7 12:00", "6 12:00 -OutsideOpenPeriods, 18:00 +weekly, 21:00 -x, 7 02:00 +weekly, 08:00 -OutsideOpenPeriods"},
		{"without a lead a base that starts just before is opened for a while",
			suspended(0, saturday, weekly("", "20:00", "08:00")), "6 12:00", "7 12:00", "6 12:00 -OutsideOpenPeriods, 20:00 +weekly, 21:00 -x, 7 02:00 +weekly, 08:00 -OutsideOpenPeriods"},
		{"a lead of less than a second is none",
			suspended(time.Second-1, saturday, weekly("", "20:00", "08:00")), "6 20:00", "6 22:00", "6 20:00 +weekly, 21:00 -x"},
		{"no periods close nothing, with every lead",
			suspended(time.Hour, nil, weekly("", "20:00", "08:00")), "6 12:00", "6 22:00", "6 12:00 -OutsideOpenPeriods, 20:00 +weekly"},
		{"a window that ends before the base starts has no effect on it",
			suspended(6*time.Hour, one("6 12:00", "6 13:00"), weekly("", "20:00", "08:00")), "6 11:00", "6 22:00", "6 11:00 -OutsideOpenPeriods, 12:00 -x, 13:00 -OutsideOpenPeriods, 20:00 +weekly"},
	} {
		tt.runBoth(t)
	}
}

// TestLeadToTheSecond has a window from 21:00 to 23:00 with a lead of an hour.
func TestLeadToTheSecond(t *testing.T) {
	base := func(from, until string) schedule.Config {
		return suspended(time.Hour, one("6 21:00", "6 23:00"), hours("s", from, until))
	}
	valid := func(from string, c schedule.Config) schedule.Config {
		c.Exceptions[0].From = on(from)
		return c
	}
	for _, tt := range []course{
		{"a base that starts with the lead waits", base("6 20:00", "7 00:00"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 20:00 -x, 23:00 +s"},
		{"a base that starts a second before the lead runs on", base("6 19:59:59", "7 00:00"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 19:59:59 +s, 21:00 -x, 23:00 +s"},
		{"a base that starts a second before the window waits", base("6 20:59:59", "7 00:00"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 20:59:59 -x, 23:00 +s"},
		{"a base that starts with the window waits", base("6 21:00", "7 00:00"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 21:00 -x, 23:00 +s"},
		{"a base that starts with the end of the window starts", base("6 23:00", "7 00:00"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 21:00 -x, 23:00 +s"},
		{"a base that is over before the window does not start at all", base("6 20:10", "6 20:40"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 20:10 -x, 20:40 -OutsideOpenPeriods, 21:00 -x, 23:00 -OutsideOpenPeriods"},
		{"a base that is over when the lead begins is left alone", base("6 19:30", "6 20:00"), "6 19:00", "6 23:30", "6 19:00 -OutsideOpenPeriods, 19:30 +s, 20:00 -OutsideOpenPeriods, 21:00 -x, 23:00 -OutsideOpenPeriods"},
		{"a base that starts before the exception is valid runs on", valid("6 20:30", base("6 20:15", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -OutsideOpenPeriods, 20:15 +s, 21:00 -x, 23:00 +s"},
		{"a base that starts when the exception becomes valid waits", valid("6 20:30", base("6 20:30", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -OutsideOpenPeriods, 20:30 -x, 23:00 +s"},
		{"a base that starts after the exception became valid waits", valid("6 20:30", base("6 20:40", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -OutsideOpenPeriods, 20:40 -x, 23:00 +s"},
		{"validity that begins in the window makes it start there", valid("6 21:30", base("6 20:40", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -OutsideOpenPeriods, 20:40 +s, 21:30 -x, 23:00 +s"},
		{"validity counts in whole seconds", valid("2026-06-06T20:30:00.9Z", base("6 20:30", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -OutsideOpenPeriods, 20:30 -x, 23:00 +s"},
	} {
		tt.runBoth(t)
	}
}

// TestLeadOfWindows has two windows, from 21:00 to 22:00 and from 23:00 on.
func TestLeadOfWindows(t *testing.T) {
	two := []schedule.Period{hours("second", "6 23:00", "7 00:00"), hours("first", "6 21:00", "6 22:00")}
	touching := []schedule.Period{hours("second", "6 22:00", "6 23:00"), hours("first", "6 21:00", "6 22:00")}
	overlapping := []schedule.Period{hours("second", "6 21:30", "6 23:00"), hours("first", "6 21:00", "6 22:00")}
	base := func(lead time.Duration, windows []schedule.Period, from string) schedule.Config {
		return suspended(lead, windows, hours("s", from, "7 02:00"))
	}
	waits := func(from, until string) string {
		return "6 16:00 -OutsideOpenPeriods, " + from + " -x, " + until + " +s"
	}
	for _, tt := range []course{
		{"the lead of the second reaches back over the first", base(3*time.Hour, two, "6 20:30"), "6 16:00", "7 01:00", waits("20:30", "7 00:00")},
		{"the lead of the second does not reach the start", base(3*time.Hour, two, "6 19:30"), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 19:30 -x, 22:00 +s, 23:00 -x, 7 00:00 +s"},
		{"the lead of the second just reaches the start", base(3*time.Hour, two, "6 20:00"), "6 16:00", "7 01:00", waits("20:00", "7 00:00")},
		{"the lead of the second misses the start by a second", base(3*time.Hour, two, "6 19:59:59"), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 19:59:59 -x, 22:00 +s, 23:00 -x, 7 00:00 +s"},
		{"a base that starts in the first waits for the end of the second", base(2*time.Hour, two, "6 21:30"), "6 16:00", "7 01:00", waits("21:00", "7 00:00")},
		{"a base that starts with the first waits for the end of the second", base(2*time.Hour, two, "6 21:00"), "6 16:00", "7 01:00", waits("21:00", "7 00:00")},
		{"a base that starts in the first, before the lead of the second, does not", base(time.Hour, two, "6 21:59:59"), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 21:00 -x, 22:00 +s, 23:00 -x, 7 00:00 +s"},
		{"a base that starts between them waits", base(time.Hour, two, "6 22:30"), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 21:00 -x, 22:00 -OutsideOpenPeriods, 22:30 -x, 7 00:00 +s"},
		{"a base that runs before both leads runs on between the windows", base(3*time.Hour, two, "6 17:00"), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 17:00 +s, 21:00 -x, 22:00 +s, 23:00 -x, 7 00:00 +s"},
		{"windows that touch are one", base(90*time.Minute, touching, "6 20:30"), "6 16:00", "7 01:00", waits("20:30", "23:00")},
		{"windows that touch have the lead of the first", base(time.Hour, touching, "6 19:30"), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 19:30 +s, 21:00 -x, 23:00 +s"},
		{"windows that overlap are one", base(time.Hour, overlapping, "6 20:30"), "6 16:00", "7 01:00", waits("20:30", "23:00")},
	} {
		tt.runBoth(t)
	}
}

// TestLeadOfSeveral has several intervals of the base in the leads of TestLeadOfWindows.
func TestLeadOfSeveral(t *testing.T) {
	base := func(windows ...schedule.Period) schedule.Config {
		return suspended(3*time.Hour, []schedule.Period{hours("e", "6 21:00", "6 22:00"), hours("e", "6 23:00", "7 00:00")}, windows...)
	}
	for _, tt := range []course{
		{"none of them starts", base(
			hours("s", "6 18:30", "6 19:00"), hours("s", "6 20:00", "6 20:30"), hours("s", "6 20:35", "6 20:40"),
			hours("s", "6 20:45", "6 20:50"), hours("s", "6 22:15", "6 22:30"),
		), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 18:30 -x, 19:00 -OutsideOpenPeriods, 20:00 -x, 20:30 -OutsideOpenPeriods, 20:35 -x, 20:40 -OutsideOpenPeriods, 20:45 -x, 20:50 -OutsideOpenPeriods, 21:00 -x, 22:00 -OutsideOpenPeriods, 22:15 -x, 22:30 -OutsideOpenPeriods, 23:00 -x, 7 00:00 -OutsideOpenPeriods"},
		{"one ends between the windows", base(hours("s", "6 20:30", "6 22:10")), "6 16:00", "7 01:00", "6 16:00 -OutsideOpenPeriods, 20:30 -x, 22:10 -OutsideOpenPeriods, 23:00 -x, 7 00:00 -OutsideOpenPeriods"},
	} {
		tt.runBoth(t)
	}
}

// TestLeadUsesTrueStart checks leads if the base starts before the exception.
func TestLeadUsesTrueStart(t *testing.T) {
	with := func(change func(c *schedule.Config), windows ...schedule.Period) schedule.Config {
		c := suspended(time.Hour, one("6 21:00", "6 23:00"), windows...)
		change(&c)
		return c
	}
	same := func(*schedule.Config) {}
	for _, tt := range []course{
		{"a window that goes on where another ends does not start",
			with(same, hours("b", "6 20:30", "7 00:00"), hours("a", "6 18:00", "6 20:30")), "6 20:00", "6 23:30", "6 20:00 +a, 20:30 +b, 21:00 -x, 23:00 +b"},
		{"a window starts again after a close period",
			with(func(c *schedule.Config) { c.ClosePeriods = []schedule.Period{hours("soft", "6 19:00", "6 20:30")} }, hours("s", "6 18:00", "7 00:00")),
			"6 18:30", "6 23:30", "6 18:30 +s, 19:00 -soft, 20:30 -x, 23:00 +s"},
		{"a window starts with notBefore",
			with(func(c *schedule.Config) { c.NotBefore = on("6 20:30") }, hours("s", "6 18:00", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -NotYetActive, 20:30 -x, 23:00 +s"},
		{"a close period goes on where a hard one ends",
			with(func(c *schedule.Config) {
				c.Default = schedule.Opened
				c.Exceptions[0].OpenPeriods, c.Exceptions[0].ClosePeriods = c.Exceptions[0].ClosePeriods, nil
				c.ClosePeriods = []schedule.Period{hours("soft", "6 20:30", "7 00:00")}
				c.HardClosePeriods = []schedule.Period{hours("hard", "6 19:00", "6 20:45")}
			}), "6 18:30", "6 23:30", "6 18:30 +OutsideClosePeriods, 19:00 -hard, 20:45 -soft, 21:00 +x, 23:00 -soft"},
		{"a close period goes on where notBefore ends",
			with(func(c *schedule.Config) {
				c.Default, c.NotBefore = schedule.Opened, on("6 20:45")
				c.Exceptions[0].OpenPeriods, c.Exceptions[0].ClosePeriods = c.Exceptions[0].ClosePeriods, nil
				c.ClosePeriods = []schedule.Period{hours("soft", "6 20:30", "7 00:00")}
			}), "6 18:30", "6 23:30", "6 18:30 -NotYetActive, 20:45 -soft, 21:00 +x, 23:00 -soft"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// TestLeadWithEarlierRows checks leads with rows that are not part of the base.
func TestLeadWithEarlierRows(t *testing.T) {
	with := func(change func(c *schedule.Config), windows ...schedule.Period) schedule.Config {
		c := suspended(time.Hour, one("6 21:00", "6 23:00"), windows...)
		change(&c)
		return c
	}
	for _, tt := range []course{
		{"a window starts again after a hard close period",
			with(func(c *schedule.Config) { c.HardClosePeriods = []schedule.Period{hours("hard", "6 19:00", "6 20:30")} }, hours("s", "6 18:00", "7 00:00")),
			"6 18:30", "6 23:30", "6 18:30 +s, 19:00 -hard, 20:30 -x, 23:00 +s"},
		{"notAfter ends what would have waited",
			with(func(c *schedule.Config) { c.NotAfter = on("6 20:45") }, hours("s", "6 20:30", "7 00:00")), "6 20:00", "6 23:30", "6 20:00 -OutsideOpenPeriods, 20:30 -x, 20:45 -Expired"},
		{"an open request does not start the base",
			with(func(c *schedule.Config) { c.Open = []schedule.Period{hours("me", "6 18:00", "6 20:30")} }, hours("s", "6 20:15", "7 00:00")),
			"6 17:00", "6 23:30", "6 17:00 -OutsideOpenPeriods, 18:00 +OpenRequested by me, 20:30 -x, 23:00 +s"},
		{"a close request does not end the base",
			with(func(c *schedule.Config) { c.Close = []schedule.Period{hours("me", "6 19:00", "6 20:30")} }, hours("s", "6 18:00", "7 00:00")),
			"6 17:00", "6 23:30", "6 17:00 -OutsideOpenPeriods, 18:00 +s, 19:00 -CloseRequested by me, 20:30 +s, 21:00 -x, 23:00 +s"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// TestLeadOfOverlappingExceptions has a window from 21:00 to 23:00 in the second.
func TestLeadOfOverlappingExceptions(t *testing.T) {
	led := closing(hours("e", "6 21:00", "6 23:00"))
	led.Lead = time.Hour
	none := opening()
	for _, tt := range []course{
		{"a lead of the second begins in the first",
			overlap(between("6 20:00", "6 20:30", none), led, hours("s", "6 20:15", "6 22:30")),
			"6 20:00", "7 00:00", "6 20:00 -OutsideOpenPeriods, 20:15 +s, 20:30 -x, 23:00 -OutsideOpenPeriods"},
		{"a lead of the second is for a window that the first hides",
			overlap(between("6 20:30", "6 23:30", none), led, hours("s", "6 20:15", "6 22:30")),
			"6 20:00", "7 00:00", "6 20:00 -OutsideOpenPeriods, 20:15 -x, 20:30 +s, 22:30 -OutsideOpenPeriods"},
		{"the schedule that a lead looks at is that without the first",
			overlap(between("6 18:00", "6 20:30", replacing(hours("e", "6 18:00", "6 20:30"))), led, hours("s", "6 20:30", "7 00:00")),
			"6 17:00", "6 23:30", "6 17:00 -OutsideOpenPeriods, 18:00 +first, 20:30 -x, 23:00 +s"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// TestExceptionsWhileClockIsSetBack has Oslo's night of the 25th of October
// 2026: 03:00 is 02:00 again at 01:00 UTC.
func TestExceptionsWhileClockIsSetBack(t *testing.T) {
	night := func(kind func(...schedule.Period) schedule.Exception, lead time.Duration, start, end string) schedule.Config {
		x := kind(weekly("Europe/Oslo", start, end, time.Sunday))
		x.From, x.Until, x.Lead = utc("2026-10-24T22:00:00Z"), utc("2026-10-25T23:00:00Z"), lead
		return schedule.Config{
			OpenPeriods: []schedule.Period{weekly("Europe/Oslo", "01:30", "05:00")}, Exceptions: []schedule.Exception{x},
		}
	}
	from, until := "2026-10-24T22:00:00Z", "2026-10-25T05:00:00Z"
	for _, tt := range []course{
		{"the first of two times counts", night(closing, 0, "02:30", "03:30"), from, until, "24 22:00 -OutsideOpenPeriods, 23:30 +weekly, 25 00:30 -x, 02:30 +weekly, 04:00 -OutsideOpenPeriods"},
		{"a lead is elapsed time and reaches the start", night(closing, 2*time.Hour+30*time.Minute, "03:00", "03:30"), from, until, "24 22:00 -OutsideOpenPeriods, 23:30 -x, 25 02:30 +weekly, 04:00 -OutsideOpenPeriods"},
		{"a lead is elapsed time and does not reach the start", night(closing, 2*time.Hour, "03:00", "03:30"), from, until, "24 22:00 -OutsideOpenPeriods, 23:30 +weekly, 25 02:00 -x, 02:30 +weekly, 04:00 -OutsideOpenPeriods"},
		{"a night with a default is an hour longer", night(replacing, 0, "02:00", "04:00"), from, until, "24 22:00 -x, 25 00:00 +x, 03:00 -x"},
		{"an open period in the night", night(opening, 0, "02:30", "05:30"), from, until, "24 22:00 -OutsideOpenPeriods, 23:30 +weekly, 25 00:30 +x, 04:30 -OutsideOpenPeriods"},
	} {
		tt.runBoth(t)
	}
}

func TestPlanKeepsPeriodsOfExceptions(t *testing.T) {
	for _, kind := range []func(...schedule.Period) schedule.Exception{opening, closing, replacing} {
		periods := one("6 10:00", "6 12:00")
		plan := newPlan(schedule.Config{Exceptions: []schedule.Exception{kind(periods...)}, OpenPeriods: []schedule.Period{hours("s", "6 09:30", "6 13:00")}})
		want := plan.Decide(on("6 10:00"))
		periods[0] = schedule.Period{}
		if got := plan.Decide(on("6 10:00")); got != want {
			t.Errorf("it became %+v, not %+v", got, want)
		}
	}
}
