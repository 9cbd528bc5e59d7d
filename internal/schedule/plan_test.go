package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// June is a plan for the days of June 2026: opened from the 10th to the 20th except
// for a soft freeze on the 12th and a hard one on the 14th.
func june() schedule.Config {
	return schedule.Config{
		OpenPeriods:      []schedule.Period{dated("window", "2026-06-10T00:00:00Z", "2026-06-20T00:00:00Z")},
		ClosePeriods:     []schedule.Period{dated("soft", "2026-06-12T00:00:00Z", "2026-06-13T00:00:00Z")},
		HardClosePeriods: []schedule.Period{dated("hard", "2026-06-14T00:00:00Z", "2026-06-15T00:00:00Z")},
	}
}

// requested is June with requests in force between two days of it.
func requested(open, closed [2]int) schedule.Config {
	c := june()
	if open[0] > 0 {
		c.Open = []schedule.Period{dated("open", juneDay(open[0]), juneDay(open[1]))}
	}
	if closed[0] > 0 {
		c.Close = []schedule.Period{dated("close", juneDay(closed[0]), juneDay(closed[1]))}
	}
	return c
}

func bounded(c schedule.Config, notBefore, notAfter int) schedule.Config {
	if notBefore > 0 {
		c.NotBefore = utc(juneDay(notBefore))
	}
	if notAfter > 0 {
		c.NotAfter = utc(juneDay(notAfter))
	}
	return c
}

func openedByDefault(c schedule.Config) schedule.Config {
	c.Default = schedule.Opened
	c.OpenPeriods = nil
	return c
}

func juneDay(d int) string { return fmt.Sprintf("2026-06-%02dT00:00:00Z", d) }

// words reads "state reason by until day" with "then state reason by on day"
// after it if a change is in sight.
func words(d schedule.Decision) string {
	s := fmt.Sprintf("%s %s", d.State, d.Reason)
	if d.By != "" {
		s += " by " + d.By
	}
	if !d.Until.IsZero() {
		s += " until " + d.Until.Format("2")
	}
	if d.Next.At.IsZero() {
		return s
	}
	s += fmt.Sprintf(", then %s %s", d.Next.State, d.Next.Reason)
	if d.Next.By != "" {
		s += " by " + d.Next.By
	}
	return s + " on " + d.Next.At.Format("2")
}

type row struct {
	name   string
	config schedule.Config
	day    int
	want   string
}

func (r row) run(t *testing.T) {
	plan := newPlan(r.config)
	at := utc(juneDay(r.day))
	if got := words(plan.Decide(at)); got != r.want {
		t.Errorf("on the %d it is\n%q, want\n%q", r.day, got, r.want)
	}
	// A day of June is a whole one: its last nanosecond is like its first.
	if got := words(plan.Decide(at.Add(24*time.Hour - 1))); got != r.want {
		t.Errorf("at the end of the %d it is\n%q, want\n%q", r.day, got, r.want)
	}
}

func TestDecideBySchedule(t *testing.T) {
	none := [2]int{}
	for _, tt := range []row{
		{"nothing but a default of closed", schedule.Config{}, 1, "closed Default"},
		{"nothing but a default of opened", schedule.Config{Default: schedule.Opened}, 1, "opened Default"},
		{"before a window", june(), 9, "closed OutsideOpenPeriods until 10, then opened OpenPeriod by window on 10"},
		{"inside a window", june(), 10, "opened OpenPeriod by window until 12, then closed ClosePeriod by soft on 12"},
		{"inside a window and a soft close period", june(), 12,
			"closed ClosePeriod by soft until 13, then opened OpenPeriod by window on 13"},
		{"inside a window and a hard close period", june(), 14,
			"closed ClosePeriod by hard until 15, then opened OpenPeriod by window on 15"},
		{"inside a window with no close period to come", june(), 15,
			"opened OpenPeriod by window until 20, then closed OutsideOpenPeriods on 20"},
		{"after the last window", june(), 20, "closed OutsideOpenPeriods"},
		{"a default of opened outside of close periods", openedByDefault(june()), 11,
			"opened OutsideClosePeriods until 12, then closed ClosePeriod by soft on 12"},
		{"a default of opened inside a close period", openedByDefault(june()), 12,
			"closed ClosePeriod by soft until 13, then opened OutsideClosePeriods on 13"},
		{"a default of opened after the last close period", openedByDefault(june()), 15, "opened OutsideClosePeriods"},
		{"a default of opened with a hard close period alone",
			schedule.Config{Default: schedule.Opened, HardClosePeriods: june().HardClosePeriods}, 13,
			"opened OutsideClosePeriods until 14, then closed ClosePeriod by hard on 14"},
		{"close periods do not name the reason of a default of closed", schedule.Config{ClosePeriods: june().ClosePeriods}, 11,
			"closed Default until 12"},
		{"windows do not name the reason of a default of opened",
			schedule.Config{Default: schedule.Opened, OpenPeriods: june().OpenPeriods}, 9,
			"opened Default until 10"},
		{"requests that are none", requested(none, none), 10,
			"opened OpenPeriod by window until 12, then closed ClosePeriod by soft on 12"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDecideByRequest(t *testing.T) {
	none := [2]int{}
	for _, tt := range []row{
		{"a planned open request", requested([2]int{5, 7}, none), 4,
			"closed OutsideOpenPeriods until 5, then opened OpenRequested by open on 5"},
		{"an open request in force", requested([2]int{5, 7}, none), 6,
			"opened OpenRequested by open until 7, then closed OutsideOpenPeriods on 7"},
		{"an open request that has passed", requested([2]int{5, 7}, none), 7,
			"closed OutsideOpenPeriods until 10, then opened OpenPeriod by window on 10"},
		{"an open request until further notice ends at a hard close period only", requested([2]int{5, 30}, none), 6,
			"opened OpenRequested by open until 14, then closed ClosePeriod by hard on 14"},
		{"an open request lifts a soft close period", requested([2]int{12, 16}, none), 12,
			"opened OpenRequested by open until 14, then closed ClosePeriod by hard on 14"},
		{"an open request does not lift a hard close period", requested([2]int{12, 16}, none), 14,
			"closed ClosePeriod by hard until 15, then opened OpenRequested by open on 15"},
		{"an open request that runs into a window is not a change", requested([2]int{15, 17}, none), 16,
			"opened OpenRequested by open until 17, then closed OutsideOpenPeriods on 20"},
		{"an open request within a window gives it another reason", requested([2]int{16, 18}, none), 15,
			"opened OpenPeriod by window until 16, then closed OutsideOpenPeriods on 20"},
		{"a planned close request", requested(none, [2]int{16, 18}), 15,
			"opened OpenPeriod by window until 16, then closed CloseRequested by close on 16"},
		{"a close request beats a window", requested(none, [2]int{16, 18}), 17,
			"closed CloseRequested by close until 18, then opened OpenPeriod by window on 18"},
		{"a close request beats an open request", requested([2]int{16, 18}, [2]int{16, 17}), 16,
			"closed CloseRequested by close until 17, then opened OpenRequested by open on 17"},
		{"a close request beats a hard close period", requested(none, [2]int{14, 15}), 14,
			"closed CloseRequested by close until 15, then opened OpenPeriod by window on 15"},
		{"a close request that runs into a close period is not a change", requested(none, [2]int{11, 12}), 11,
			"closed CloseRequested by close until 12, then opened OpenPeriod by window on 13"},
		{"a close request beats a default of opened", openedByDefault(requested(none, [2]int{16, 18})), 16,
			"closed CloseRequested by close until 18, then opened OutsideClosePeriods on 18"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDecideByBounds(t *testing.T) {
	none := [2]int{}
	for _, tt := range []row{
		{"before notBefore inside a window", bounded(june(), 11, 0), 10,
			"closed NotYetActive until 11, then opened OpenPeriod by window on 11"},
		{"at notBefore inside a window", bounded(june(), 11, 0), 11,
			"opened OpenPeriod by window until 12, then closed ClosePeriod by soft on 12"},
		{"notBefore within a close period is not a change", bounded(june(), 12, 0), 11,
			"closed NotYetActive until 12, then opened OpenPeriod by window on 13"},
		{"before notAfter inside a window", bounded(june(), 0, 17), 16,
			"opened OpenPeriod by window until 17, then closed Expired on 17"},
		{"from notAfter on inside a window", bounded(june(), 0, 17), 17, "closed Expired"},
		{"a default of opened before notBefore", openedByDefault(bounded(june(), 5, 0)), 4, "closed NotYetActive until 5, then opened OutsideClosePeriods on 5"},
		{"a default of opened after notAfter", openedByDefault(bounded(june(), 0, 5)), 6, "closed Expired until 14"},
		{"an open request beats notBefore", bounded(requested([2]int{2, 4}, none), 8, 0), 3,
			"opened OpenRequested by open until 4, then closed NotYetActive on 4"},
		{"an open request beats notAfter", bounded(requested([2]int{22, 24}, none), 0, 17), 23,
			"opened OpenRequested by open until 24, then closed Expired on 24"},
		{"an open request after notAfter is the next change", bounded(requested([2]int{22, 24}, none), 0, 17), 18,
			"closed Expired until 22, then opened OpenRequested by open on 22"},
		{"a hard close period is the reason before notBefore too", bounded(june(), 18, 0), 14,
			"closed ClosePeriod by hard until 15, then opened OpenPeriod by window on 18"},
		{"a soft close period is not the reason before notBefore", bounded(june(), 18, 0), 12,
			"closed NotYetActive until 14, then opened OpenPeriod by window on 18"},
		{"a close request is the reason after notAfter too", bounded(requested(none, [2]int{22, 24}), 0, 17), 23,
			"closed CloseRequested by close until 24"},
	} {
		t.Run(tt.name, tt.run)
	}
}
