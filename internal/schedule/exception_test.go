package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// course is a row of a table that says what a plan decides from one instant to
// another: "Mon 1 20:00 opened OpenPeriod by nights", a line each time that one
// of these words changes. Times are short for those of June 2026.
type course struct {
	name        string
	config      schedule.Config
	from, until string
	want        []string
}

// on reads "6 21:00" as an instant of June 2026, and RFC 3339 as itself.
func on(s string) time.Time {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t
	}
	for _, layout := range []string{"2 15:04:05", "2 15:04"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.AddDate(2026, int(time.June-time.January), 0)
		}
	}
	panic(s)
}

// hours returns a dated period of June 2026.
func hours(name, from, until string) schedule.Period {
	p, err := schedule.Dated(name, on(from), on(until))
	if err != nil {
		panic(err)
	}
	return p
}

// follow returns the decisions of a plan, from one Until to the next.
func follow(plan *schedule.Plan, from, until time.Time) (lines []string, changes []schedule.Interval) {
	last := ""
	for at := from; at.Before(until); {
		d := plan.Decide(at)
		words := d.State.String() + " " + string(d.Reason)
		if d.By != "" {
			words += " by " + d.By
		}
		layout := "Mon 2 15:04 "
		if at.Second() > 0 {
			layout = "Mon 2 15:04:05 "
		}
		if words != last {
			lines, last = append(lines, at.Format(layout)+words), words
		}
		if n := len(changes); n == 0 || changes[n-1].State != d.State {
			changes = append(changes, schedule.Interval{From: at, State: d.State, Reason: d.Reason, By: d.By})
		}
		if at = d.Until; at.IsZero() || at.After(until) {
			at = until
		}
		changes[len(changes)-1].Until = at
	}
	return lines, changes
}

func (c course) run(t *testing.T) {
	t.Helper()
	plan := newPlan(c.config)
	from, until := on(c.from), on(c.until)
	got, changes := follow(plan, from, until)
	if !slices.Equal(got, c.want) {
		t.Errorf("it is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
	}
	intervals := slices.Collect(plan.Intervals(from, until))
	if !slices.Equal(intervals, changes) {
		t.Errorf("the intervals are\n%v, the decisions make\n%v", intervals, changes)
	}
	for i, v := range intervals {
		if next := plan.Decide(v.Until.Add(-time.Nanosecond)).Next; i+1 < len(intervals) && next != (schedule.Transition{
			At: v.Until, State: intervals[i+1].State, Reason: intervals[i+1].Reason, By: intervals[i+1].By,
		}) {
			t.Errorf("just before %s the next transition is %+v", v.Until, next)
		}
	}
}

// runBoth runs the row of a plan that is closed by default, and then its mirror image:
// opened by default, with open and close periods exchanged. No row has both of one kind.
func (c course) runBoth(t *testing.T) {
	t.Run(c.name, c.run)
	c.config.Default = schedule.Opened
	c.config.OpenPeriods, c.config.ClosePeriods = nil, c.config.OpenPeriods
	c.config.Exceptions = slices.Clone(c.config.Exceptions)
	for i := range c.config.Exceptions {
		e := &c.config.Exceptions[i]
		if e.OpenPeriods, e.ClosePeriods = e.ClosePeriods, e.OpenPeriods; e.Default != nil {
			e.Default = state(1 - *e.Default)
		}
	}
	mirror := strings.NewReplacer("opened", "closed", "closed", "opened",
		"OpenPeriod", "ClosePeriod", "OutsideOpenPeriods", "OutsideClosePeriods")
	c.want = slices.Clone(c.want)
	for i := range c.want {
		c.want[i] = mirror.Replace(c.want[i])
	}
	t.Run("opened by default, "+c.name, c.run)
}

func TestOpenPeriodsOfExceptions(t *testing.T) {
	weekend := []time.Weekday{time.Saturday, time.Sunday}
	onSite := schedule.Config{
		OpenPeriods: []schedule.Period{weekly("", "20:00", "06:00", weekdays...)},
		Exceptions: []schedule.Exception{{
			Name: "on-site", From: on("6 00:00"), Until: utc("2026-07-06T00:00:00Z"),
			OpenPeriods: []schedule.Period{
				weekly("", "06:00", "11:00", weekend...), weekly("", "01:00", "06:00", weekdays...),
			},
		}},
	}
	for _, tt := range []course{
		{"an on-site event begins", onSite, "5 00:00", "9 12:00", []string{
			"Fri 5 00:00 opened OpenPeriod by weekly",
			"Fri 5 06:00 closed OutsideOpenPeriods",
			"Fri 5 20:00 opened OpenPeriod by weekly",
			"Sat 6 06:00 opened Exception by on-site",
			"Sat 6 11:00 closed OutsideOpenPeriods",
			"Sun 7 06:00 opened Exception by on-site",
			"Sun 7 11:00 closed OutsideOpenPeriods",
			"Mon 8 01:00 opened Exception by on-site",
			"Mon 8 06:00 closed OutsideOpenPeriods",
			"Mon 8 20:00 opened OpenPeriod by weekly",
			"Tue 9 01:00 opened Exception by on-site",
			"Tue 9 06:00 closed OutsideOpenPeriods",
		}},
		{"an on-site event is over after a month", onSite, "2026-07-04T00:00:00Z", "2026-07-13T12:00:00Z", []string{
			"Sat 4 00:00 opened OpenPeriod by weekly",
			"Sat 4 06:00 opened Exception by on-site",
			"Sat 4 11:00 closed OutsideOpenPeriods",
			"Sun 5 06:00 opened Exception by on-site",
			"Sun 5 11:00 closed OutsideOpenPeriods",
			"Mon 6 20:00 opened OpenPeriod by weekly",
			"Tue 7 06:00 closed OutsideOpenPeriods",
			"Tue 7 20:00 opened OpenPeriod by weekly",
			"Wed 8 06:00 closed OutsideOpenPeriods",
			"Wed 8 20:00 opened OpenPeriod by weekly",
			"Thu 9 06:00 closed OutsideOpenPeriods",
			"Thu 9 20:00 opened OpenPeriod by weekly",
			"Fri 10 06:00 closed OutsideOpenPeriods",
			"Fri 10 20:00 opened OpenPeriod by weekly",
			"Sat 11 06:00 closed OutsideOpenPeriods",
		}},
	} {
		tt.runBoth(t)
	}
}

func TestExceptionsWithADefault(t *testing.T) {
	holidays := func(windows ...schedule.Period) schedule.Config {
		return schedule.Config{
			OpenPeriods: []schedule.Period{weekly("", "20:00", "06:00", weekdays...)},
			Exceptions: []schedule.Exception{{
				Name: "holidays", Default: state(schedule.Closed),
				From: utc("2026-12-24T00:00:00Z"), Until: utc("2026-12-31T23:59:59Z"), OpenPeriods: windows,
			}},
		}
	}
	from, until := "2026-12-23T12:00:00Z", "2027-01-02T12:00:00Z"
	before := []string{"Wed 23 12:00 closed OutsideOpenPeriods", "Wed 23 20:00 opened OpenPeriod by weekly"}
	after := []string{
		"Thu 31 23:59:59 opened OpenPeriod by weekly",
		"Fri 1 06:00 closed OutsideOpenPeriods",
		"Fri 1 20:00 opened OpenPeriod by weekly",
		"Sat 2 06:00 closed OutsideOpenPeriods",
	}
	for _, tt := range []course{
		{"the holidays are around the clock", holidays(weekly("", "00:00", "24:00")), from, until, slices.Concat(
			before, []string{"Thu 24 00:00 opened Exception by holidays"}, after,
		)},
		{"the holidays are around the clock except for a minute",
			holidays(weekly("", "00:00", "23:59")), "2026-12-23T21:00:00Z", "2026-12-25T00:01:00Z", []string{
				"Wed 23 21:00 opened OpenPeriod by weekly",
				"Thu 24 00:00 opened Exception by holidays",
				"Thu 24 23:59 closed Exception by holidays",
				"Fri 25 00:00 opened Exception by holidays",
			}},
		{"the holidays have no periods", holidays(), from, until, slices.Concat(
			before, []string{"Thu 24 00:00 closed Exception by holidays"}, after,
		)},
		{"the periods of the holidays are elsewhere", holidays(hours("x", "1 00:00", "2 00:00")), from, until, slices.Concat(
			before, []string{"Thu 24 00:00 closed Exception by holidays"}, after,
		)},
	} {
		tt.runBoth(t)
	}
}

// opening returns an exception called "x" that is valid in the first half of June 2026.
func opening(periods ...schedule.Period) schedule.Exception {
	return schedule.Exception{Name: "x", From: on("1 00:00"), Until: on("15 00:00"), OpenPeriods: periods}
}

// closing is like opening, but its periods close.
func closing(periods ...schedule.Period) schedule.Exception {
	e := opening()
	e.ClosePeriods = periods
	return e
}

// replacing is like opening, but the schedule does not count.
func replacing(periods ...schedule.Period) schedule.Exception {
	e := opening(periods...)
	e.Default = state(schedule.Closed)
	return e
}

func TestExceptionsOutsideTheirValidity(t *testing.T) {
	valid := func(kind func(...schedule.Period) schedule.Exception, from, until string) schedule.Config {
		e := kind(hours("e", "6 10:00", "6 20:00"))
		e.From, e.Until = on(from), on(until)
		return schedule.Config{OpenPeriods: []schedule.Period{hours("s", "6 12:00", "6 14:00")}, Exceptions: []schedule.Exception{e}}
	}
	as := func(lines ...string) []string {
		for i := range lines {
			lines[i] = "Sat 6 " + lines[i]
		}
		return lines
	}
	base := as("09:00 closed OutsideOpenPeriods", "12:00 opened OpenPeriod by s", "14:00 closed OutsideOpenPeriods")
	for _, tt := range []course{
		{"open periods that is over", valid(opening, "6 08:00", "6 10:00"), "6 09:00", "6 21:00", base},
		{"close periods that is over", valid(closing, "6 08:00", "6 10:00"), "6 09:00", "6 21:00", base},
		{"a default that is over", valid(replacing, "6 08:00", "6 09:00"), "6 09:00", "6 21:00", base},
		{"open periods that is to come", valid(opening, "6 20:00", "6 22:00"), "6 09:00", "6 21:00", base},
		{"close periods that is to come", valid(closing, "6 20:00", "6 22:00"), "6 09:00", "6 21:00", base},
		{"a default that is to come", valid(replacing, "6 21:00", "6 22:00"), "6 09:00", "6 21:00", base},
		{"open periods that is never valid", valid(opening, "6 13:00", "6 13:00"), "6 09:00", "6 21:00", base},
		{"close periods that is never valid", valid(closing, "6 13:00", "6 13:00"), "6 09:00", "6 21:00", base},
		{"a default that is over before it begins", valid(replacing, "6 13:30", "6 13:00"), "6 09:00", "6 21:00", base},
		{"open periods that is valid for a part of its window", valid(opening, "6 11:00", "6 16:00"), "6 09:00", "6 21:00", as(
			"09:00 closed OutsideOpenPeriods", "11:00 opened Exception by x", "16:00 closed OutsideOpenPeriods",
		)},
		{"close periods that is valid for a part of its window", valid(closing, "6 12:30", "6 13:00"), "6 09:00", "6 21:00", as(
			"09:00 closed OutsideOpenPeriods", "12:00 opened OpenPeriod by s", "12:30 closed Exception by x",
			"13:00 opened OpenPeriod by s", "14:00 closed OutsideOpenPeriods",
		)},
		{"a default that is valid for a part of its window", valid(replacing, "6 13:00", "6 16:00"), "6 09:00", "6 21:00", as(
			"09:00 closed OutsideOpenPeriods", "12:00 opened OpenPeriod by s", "13:00 opened Exception by x",
			"16:00 closed OutsideOpenPeriods",
		)},
	} {
		tt.runBoth(t)
	}
}

// TestBrokenExceptions has exceptions that are broken from 13:00 to 16:00.
func TestBrokenExceptions(t *testing.T) {
	periods := []schedule.Period{hours("e", "6 10:00", "6 20:00")}
	for _, tt := range []struct {
		name      string
		exception schedule.Exception
		closes    bool
	}{
		{"one that could only open", schedule.Exception{}, false},
		{"open periods", schedule.Exception{OpenPeriods: periods}, false},
		{"open periods and the default opened", schedule.Exception{OpenPeriods: periods, Default: state(schedule.Opened)}, false},
		{"one that could close", schedule.Exception{Closes: true}, true},
		{"one that could close, with open periods", schedule.Exception{Closes: true, OpenPeriods: periods}, true},
		{"close periods", schedule.Exception{ClosePeriods: periods}, true},
		{"close periods that do not cover the time", schedule.Exception{ClosePeriods: []schedule.Period{hours("e", "6 10:00", "6 11:00")}}, true},
		{"the default closed", schedule.Exception{OpenPeriods: periods, Default: state(schedule.Closed)}, true},
	} {
		e := tt.exception
		e.Name, e.From, e.Until, e.Broken = "x", on("6 13:00"), on("6 16:00"), true
		soft := []schedule.Period{hours("s", "6 12:00", "6 18:00")}
		closed := schedule.Config{OpenPeriods: soft, Exceptions: []schedule.Exception{e}}
		opened := schedule.Config{Default: schedule.Opened, ClosePeriods: soft, Exceptions: []schedule.Exception{e}}
		whenClosed := []string{
			"Sat 6 09:00 closed OutsideOpenPeriods", "Sat 6 12:00 opened OpenPeriod by s", "Sat 6 13:00 closed Exception by x",
			"Sat 6 16:00 opened OpenPeriod by s", "Sat 6 18:00 closed OutsideOpenPeriods",
		}
		whenOpened := []string{
			"Sat 6 09:00 opened OutsideClosePeriods", "Sat 6 12:00 closed ClosePeriod by s", "Sat 6 13:00 closed Exception by x",
			"Sat 6 16:00 closed ClosePeriod by s", "Sat 6 18:00 opened OutsideClosePeriods",
		}
		if !tt.closes {
			whenClosed, whenOpened = slices.Delete(whenClosed, 2, 4), slices.Delete(whenOpened, 2, 4)
		}
		t.Run(tt.name, course{tt.name, closed, "6 09:00", "6 20:00", whenClosed}.run)
		t.Run(tt.name+", opened by default", course{tt.name, opened, "6 09:00", "6 20:00", whenOpened}.run)
	}
}

// TestRowsAboveExceptions has a window and an exception from 10:00 to 20:00.
func TestRowsAboveExceptions(t *testing.T) {
	with := func(change func(c *schedule.Config)) schedule.Config {
		e := opening(hours("e", "6 10:00", "6 20:00"))
		c := schedule.Config{Exceptions: []schedule.Exception{e}}
		change(&c)
		return c
	}
	noon := []schedule.Period{hours("noon", "6 12:00", "6 14:00")}
	split := func(first, middle string) []string {
		return []string{
			first + " Exception by x", "Sat 6 12:00 " + middle, strings.Replace(first, "11:00", "14:00", 1) + " Exception by x",
		}
	}
	const opened, closed = "Sat 6 11:00 opened", "Sat 6 11:00 closed"
	for _, tt := range []course{
		{"a hard close period", with(func(c *schedule.Config) { c.HardClosePeriods = noon }), "6 11:00", "6 15:00", split(opened, "closed ClosePeriod by noon")},
		{"a close request", with(func(c *schedule.Config) { c.Close = noon }), "6 11:00", "6 15:00", split(opened, "closed CloseRequested by noon")},
		{"an open request", with(func(c *schedule.Config) { c.Open = noon }), "6 11:00", "6 15:00", split(opened, "opened OpenRequested by noon")},
		{"an open request while an exception closes", with(func(c *schedule.Config) {
			c.Open, c.Exceptions[0] = noon, closing(hours("e", "6 10:00", "6 20:00"))
		}), "6 11:00", "6 15:00", split(closed, "opened OpenRequested by noon")},
		{"an open request while an exception is closed by default", with(func(c *schedule.Config) {
			c.Open, c.Exceptions[0] = noon, replacing()
		}), "6 11:00", "6 15:00", split(closed, "opened OpenRequested by noon")},
		{"a soft close period is none", with(func(c *schedule.Config) { c.ClosePeriods = noon }), "6 11:00", "6 15:00", []string{opened + " Exception by x"}},
		{"a hard close period of a gate that is opened by default", with(func(c *schedule.Config) {
			c.HardClosePeriods, c.Default = noon, schedule.Opened
		}), "6 11:00", "6 15:00", split(opened, "closed ClosePeriod by noon")},
		{"a hard close period while an exception is opened by default", with(func(c *schedule.Config) {
			c.HardClosePeriods, c.Exceptions[0].OpenPeriods, c.Exceptions[0].Default = noon, nil, state(schedule.Opened)
		}), "6 11:00", "6 15:00", split(opened, "closed ClosePeriod by noon")},
		{"before notBefore", with(func(c *schedule.Config) { c.NotBefore = on("6 13:00") }), "6 11:00", "6 15:00", []string{
			closed + " NotYetActive", "Sat 6 13:00 opened Exception by x",
		}},
		{"from notAfter on", with(func(c *schedule.Config) { c.NotAfter = on("6 13:00") }), "6 11:00", "6 15:00", []string{
			opened + " Exception by x", "Sat 6 13:00 closed Expired",
		}},
		{"notBefore and notAfter while an exception is opened by default", with(func(c *schedule.Config) {
			c.NotBefore, c.NotAfter = on("6 12:00"), on("6 14:00")
			c.Exceptions[0].OpenPeriods, c.Exceptions[0].Default = nil, state(schedule.Opened)
		}), "6 11:00", "6 15:00", []string{
			closed + " NotYetActive", "Sat 6 12:00 opened Exception by x", "Sat 6 14:00 closed Expired",
		}},
	} {
		t.Run(tt.name, tt.run)
	}
}
