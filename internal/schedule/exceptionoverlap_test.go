package schedule_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// overlap is a plan with the exceptions "first" and then second.
func overlap(first, second schedule.Exception, windows ...schedule.Period) schedule.Config {
	first.Name = "first"
	return schedule.Config{OpenPeriods: windows, Exceptions: []schedule.Exception{first, second}}
}

// between gives an exception another validity.
func between(from, until string, e schedule.Exception) schedule.Exception {
	e.From, e.Until = on(from), on(until)
	return e
}

// TestOverlappingExceptions has two exceptions: "x" from the 1st to the 15th, and "first", which takes precedence.
func TestOverlappingExceptions(t *testing.T) {
	none, broken := opening(), opening()
	broken.Broken = true
	both := replacing(hours("e", "6 10:00", "6 14:00"))
	both.ClosePeriods = []schedule.Period{hours("c", "6 12:00", "6 12:30")}
	openedByDefault := closing(hours("c", "6 12:00", "6 12:30"))
	openedByDefault.Default = state(schedule.Opened)
	for _, tt := range []course{
		{"the second comes back when the first is over",
			overlap(between("6 11:00", "6 12:00", replacing()), opening(hours("e", "6 10:00", "6 14:00"))),
			"6 09:00", "6 15:00", "6 09:00 -Default, 10:00 +x, 11:00 -first, 12:00 +x, 14:00 -Default"},
		{"the first decides alone, even that nothing changes",
			overlap(between("6 11:00", "6 12:00", none), replacing(), hours("s", "6 10:00", "6 14:00")),
			"6 09:00", "6 15:00", "6 09:00 -x, 11:00 +s, 12:00 -x"},
		{"the first decides alone though it is broken and opens nothing",
			overlap(between("6 11:00", "6 12:00", broken), opening(hours("e", "6 10:00", "6 14:00"))),
			"6 09:00", "6 15:00", "6 09:00 -Default, 10:00 +x, 11:00 -Default, 12:00 +x, 14:00 -Default"},
		{"a broken first that could only open leaves the second its close periods and default",
			overlap(between("6 11:00", "6 13:00", broken), both), "6 09:00", "6 15:00", "6 09:00 -x, 10:00 +x, 11:00 -x, 13:00 +x, 14:00 -x"},
		{"a broken first that could only open hides the default opened of the second",
			overlap(between("6 11:00", "6 13:00", broken), openedByDefault), "6 09:00", "6 15:00", "6 09:00 +x, 11:00 -Default, 12:00 -x, 12:30 -Default, 13:00 +x"},
		{"a first that is never valid decides nothing",
			overlap(between("6 13:00", "6 11:00", none), opening(hours("e", "6 10:00", "6 14:00"))),
			"6 09:00", "6 15:00", "6 09:00 -Default, 10:00 +x, 14:00 -Default"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestPeriodStartingAtEndOfExceptionIsEmpty(t *testing.T) {
	for _, kind := range []func(...schedule.Period) schedule.Exception{opening, closing} {
		c := schedule.Config{OpenPeriods: []schedule.Period{hours("s", "6 12:00", "6 14:00")}}
		plain := newPlan(c)
		c.Exceptions = []schedule.Exception{between("6 10:00", "6 11:00", kind(hours("e", "6 11:00", "6 13:00")))}
		plan := newPlan(c)
		for _, at := range []string{"6 09:00", "6 10:00", "6 10:59:59", "6 11:00", "6 12:00", "6 13:00"} {
			if got, want := plan.Decide(on(at)), plain.Decide(on(at)); got != want {
				t.Errorf("on the %s it is %+v, not %+v", at, got, want)
			}
		}
	}
}

// TestProposal003Examples maps extend, suspend and replace to the fields, for both
// defaults of a Gate. The exception is valid on the 6th of June; its period e is from 10:00
// to 14:00, and that of the Gate, s, from 12:00 to 16:00.
func TestProposal003Examples(t *testing.T) {
	s, e := []schedule.Period{hours("s", "6 12:00", "6 16:00")}, hours("e", "6 10:00", "6 14:00")
	closed := schedule.Config{OpenPeriods: s}
	opened := schedule.Config{Default: schedule.Opened, ClosePeriods: s}
	with := func(c schedule.Config, x schedule.Exception, rest ...schedule.State) schedule.Config {
		for _, r := range rest {
			x.Default = state(r)
		}
		c.Exceptions = []schedule.Exception{between("6 00:00", "7 00:00", x)}
		return c
	}
	for _, tt := range []course{
		{"extend, closed by default: openPeriods", with(closed, opening(e)), "6 09:00", "6 18:00", "6 09:00 -OutsideOpenPeriods, 10:00 +x, 14:00 +s, 16:00 -OutsideOpenPeriods"},
		{"extend, opened by default: closePeriods", with(opened, closing(e)), "6 09:00", "6 18:00", "6 09:00 +OutsideClosePeriods, 10:00 -x, 14:00 -s, 16:00 +OutsideClosePeriods"},
		{"suspend, closed by default: closePeriods", with(closed, closing(e)), "6 09:00", "6 18:00", "6 09:00 -OutsideOpenPeriods, 10:00 -x, 14:00 +s, 16:00 -OutsideOpenPeriods"},
		{"suspend, opened by default: openPeriods", with(opened, opening(e)), "6 09:00", "6 18:00", "6 09:00 +OutsideClosePeriods, 10:00 +x, 14:00 -s, 16:00 +OutsideClosePeriods"},
		{"replace, closed by default: openPeriods, default closed", with(closed, opening(e), schedule.Closed), "6 09:00", "6 18:00", "6 09:00 -x, 10:00 +x, 14:00 -x"},
		{"replace, opened by default: closePeriods, default opened", with(opened, closing(e), schedule.Opened), "6 09:00", "6 18:00", "6 09:00 +x, 10:00 -x, 14:00 +x"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// TestCloseWinsInAnException has periods of both lists, and a default that decides outside of them.
func TestCloseWinsInAnException(t *testing.T) {
	x := opening(hours("o", "6 10:00", "6 14:00"))
	x.ClosePeriods = []schedule.Period{hours("c", "6 12:00", "6 16:00")}
	for _, tt := range []struct {
		name string
		rest *schedule.State
		want string
	}{
		{"no default", nil, "6 09:00 +Default, 10:00 +x, 12:00 -x, 16:00 +Default"},
		{"closed", state(schedule.Closed), "6 09:00 -x, 10:00 +x, 12:00 -x"},
		{"opened", state(schedule.Opened), "6 09:00 +x, 12:00 -x, 16:00 +x"},
	} {
		x.Default = tt.rest
		c := schedule.Config{Default: schedule.Opened, Exceptions: []schedule.Exception{x}}
		t.Run(tt.name, course{tt.name, c, "6 09:00", "6 18:00", tt.want}.run)
	}
}
