package schedule_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// course is a row of a table that says what a plan decides from one instant to another: "1 20:00 +nights, 2 05:00 -OutsideOpenPeriods" is
// opened from the 1st at 20:00 on by "nights", and closed from 05:00 on the 2nd on because of OutsideOpenPeriods. Instants are of June
// 2026.
type course struct {
	name              string
	config            schedule.Config
	from, until, want string
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
func follow(plan *schedule.Plan, from, until time.Time) (text string, changes []schedule.Interval) {
	last, day := "", 0
	for at := from; at.Before(until); {
		d := plan.Decide(at)
		words := map[schedule.State]string{schedule.Opened: "+", schedule.Closed: "-"}[d.State] + cmp.Or(d.By, string(d.Reason))
		if d.Reason == schedule.OpenRequested || d.Reason == schedule.CloseRequested {
			words = words[:1] + string(d.Reason) + " by " + d.By
		}
		if words != last {
			text += ", "
			if at.Day() != day {
				text += at.Format("2 ")
			}
			text += strings.TrimSuffix(at.Format("15:04:05"), ":00") + " " + words
			last, day = words, at.Day()
		}
		if n := len(changes); n == 0 || changes[n-1].State != d.State {
			changes = append(changes, schedule.Interval{From: at, State: d.State, Reason: d.Reason, By: d.By})
		}
		if at = d.Until; at.IsZero() || at.After(until) {
			at = until
		}
		changes[len(changes)-1].Until = at
	}
	return strings.TrimPrefix(text, ", "), changes
}

func (c course) run(t *testing.T) {
	t.Helper()
	plan := newPlan(c.config)
	from, until := on(c.from), on(c.until)
	got, changes := follow(plan, from, until)
	if got != c.want {
		t.Errorf("got  %s\nwant %s", got, c.want)
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
	c.want = strings.NewReplacer(" +", " -", " -OutsideOpenPeriods", " +OutsideClosePeriods", " -", " +").Replace(c.want)
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
		{"an on-site event begins", onSite, "5 00:00", "9 12:00", "5 00:00 +weekly, 06:00 -OutsideOpenPeriods, 20:00 +weekly, 6 06:00 +on-site, 11:00 -OutsideOpenPeriods, 7 06:00 +on-site, 11:00 -OutsideOpenPeriods, 8 01:00 +on-site, 06:00 -OutsideOpenPeriods, 20:00 +weekly, 9 01:00 +on-site, 06:00 -OutsideOpenPeriods"},
		{"an on-site event is over after a month", onSite, "2026-07-04T00:00:00Z", "2026-07-13T12:00:00Z", "4 00:00 +weekly, 06:00 +on-site, 11:00 -OutsideOpenPeriods, 5 06:00 +on-site, 11:00 -OutsideOpenPeriods, 6 20:00 +weekly, 7 06:00 -OutsideOpenPeriods, 20:00 +weekly, 8 06:00 -OutsideOpenPeriods, 20:00 +weekly, 9 06:00 -OutsideOpenPeriods, 20:00 +weekly, 10 06:00 -OutsideOpenPeriods, 20:00 +weekly, 11 06:00 -OutsideOpenPeriods"},
	} {
		tt.runBoth(t)
	}
}

func TestExceptionsWithDefault(t *testing.T) {
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
	before := "23 12:00 -OutsideOpenPeriods, 20:00 +weekly"
	after := "31 23:59:59 +weekly, 1 06:00 -OutsideOpenPeriods, 20:00 +weekly, 2 06:00 -OutsideOpenPeriods"
	for _, tt := range []course{
		{"the holidays are around the clock", holidays(weekly("", "00:00", "24:00")), from, until, before + ", 24 00:00 +holidays, " + after},
		{"the holidays are around the clock except for a minute",
			holidays(weekly("", "00:00", "23:59")), "2026-12-23T21:00:00Z", "2026-12-25T00:01:00Z", "23 21:00 +weekly, 24 00:00 +holidays, 23:59 -holidays, 25 00:00 +holidays"},
		{"the holidays have no periods", holidays(), from, until, before + ", 24 00:00 -holidays, " + after},
		{"the periods of the holidays are elsewhere", holidays(hours("x", "1 00:00", "2 00:00")), from, until, before + ", 24 00:00 -holidays, " + after},
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
	const base = "6 09:00 -OutsideOpenPeriods, 12:00 +s, 14:00 -OutsideOpenPeriods"
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
		{"open periods that is valid for a part of its window", valid(opening, "6 11:00", "6 16:00"), "6 09:00", "6 21:00", "6 09:00 -OutsideOpenPeriods, 11:00 +x, 16:00 -OutsideOpenPeriods"},
		{"close periods that is valid for a part of its window", valid(closing, "6 12:30", "6 13:00"), "6 09:00", "6 21:00", "6 09:00 -OutsideOpenPeriods, 12:00 +s, 12:30 -x, 13:00 +s, 14:00 -OutsideOpenPeriods"},
		{"a default that is valid for a part of its window", valid(replacing, "6 13:00", "6 16:00"), "6 09:00", "6 21:00", "6 09:00 -OutsideOpenPeriods, 12:00 +s, 13:00 +x, 16:00 -OutsideOpenPeriods"},
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
		whenClosed := "6 09:00 -OutsideOpenPeriods, 12:00 +s, 13:00 -x, 16:00 +s, 18:00 -OutsideOpenPeriods"
		whenOpened := "6 09:00 +OutsideClosePeriods, 12:00 -s, 13:00 -x, 16:00 -s, 18:00 +OutsideClosePeriods"
		if !tt.closes {
			none := strings.NewReplacer("13:00 -x, 16:00 +s, ", "", "13:00 -x, 16:00 -s, ", "")
			whenClosed, whenOpened = none.Replace(whenClosed), none.Replace(whenOpened)
		}
		t.Run(tt.name, course{tt.name, closed, "6 09:00", "6 20:00", whenClosed}.run)
		t.Run(tt.name+", opened by default", course{tt.name, opened, "6 09:00", "6 20:00", whenOpened}.run)
	}
}

// TestRowsAboveExceptions has a window and an exception from 10:00 to 20:00, and something else from 12:00 to 14:00.
func TestRowsAboveExceptions(t *testing.T) {
	opens, closes := opening(hours("e", "6 10:00", "6 20:00")), closing(hours("e", "6 10:00", "6 20:00"))
	openedByDefault := opening()
	openedByDefault.Default = state(schedule.Opened)
	noon := []schedule.Period{hours("noon", "6 12:00", "6 14:00")}
	for _, tt := range []struct {
		name      string
		exception schedule.Exception
		config    schedule.Config
		want      string
	}{
		{"a hard close period", opens, schedule.Config{HardClosePeriods: noon}, "6 11:00 +x, 12:00 -noon, 14:00 +x"},
		{"a close request", opens, schedule.Config{Close: noon}, "6 11:00 +x, 12:00 -CloseRequested by noon, 14:00 +x"},
		{"an open request", opens, schedule.Config{Open: noon}, "6 11:00 +x, 12:00 +OpenRequested by noon, 14:00 +x"},
		{"an open request while an exception closes", closes, schedule.Config{Open: noon}, "6 11:00 -x, 12:00 +OpenRequested by noon, 14:00 -x"},
		{"an open request while an exception is closed by default", replacing(), schedule.Config{Open: noon}, "6 11:00 -x, 12:00 +OpenRequested by noon, 14:00 -x"},
		{"a soft close period is none", opens, schedule.Config{ClosePeriods: noon}, "6 11:00 +x"},
		{"a hard close period of a gate that is opened by default", opens, schedule.Config{HardClosePeriods: noon, Default: schedule.Opened}, "6 11:00 +x, 12:00 -noon, 14:00 +x"},
		{"a hard close period while an exception is opened by default", openedByDefault, schedule.Config{HardClosePeriods: noon}, "6 11:00 +x, 12:00 -noon, 14:00 +x"},
		{"before notBefore", opens, schedule.Config{NotBefore: on("6 13:00")}, "6 11:00 -NotYetActive, 13:00 +x"},
		{"from notAfter on", opens, schedule.Config{NotAfter: on("6 13:00")}, "6 11:00 +x, 13:00 -Expired"},
		{"notBefore and notAfter while an exception is opened by default", openedByDefault, schedule.Config{NotBefore: on("6 12:00"), NotAfter: on("6 14:00")},
			"6 11:00 -NotYetActive, 12:00 +x, 14:00 -Expired"},
	} {
		tt.config.Exceptions = []schedule.Exception{tt.exception}
		t.Run(tt.name, course{tt.name, tt.config, "6 11:00", "6 15:00", tt.want}.run)
	}
}
