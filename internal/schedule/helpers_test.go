package schedule_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// utc parses an instant: RFC 3339, or one of the short forms 2026-06-01, 2026-06-01T09:00 and 2026-06-01T09:00:30 in UTC.
func utc(s string) time.Time {
	for _, layout := range []string{time.RFC3339, time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	panic(s)
}

// short formats an instant in the shortest form that utc parses.
func short(t time.Time) string {
	return strings.TrimSuffix(strings.TrimSuffix(t.UTC().Format("2006-01-02T15:04:05"), ":00"), "T00:00")
}

// shortRange formats an interval. The end has no date if it is the date of the start.
func shortRange(from, until time.Time) string {
	return short(from) + "/" + strings.TrimPrefix(short(until), from.UTC().Format("2006-01-02T"))
}

// parseRange parses what shortRange formats.
func parseRange(s string) (from, until time.Time) {
	first, last, _ := strings.Cut(s, "/")
	if strings.IndexByte(last, ':') == 2 {
		last = first[:len(time.DateOnly)] + "T" + last
	}
	return utc(first), utc(last)
}

func mustZone(name string) *schedule.Zone {
	z, err := schedule.LoadZone(name)
	if err != nil {
		panic(err)
	}
	return z
}

// weekly returns a weekly period named "weekly".
func weekly(zone, start, end string, days ...time.Weekday) schedule.Period {
	from, err := schedule.ParseTimeOfDay(start)
	if err != nil {
		panic(err)
	}
	until, err := schedule.ParseEndOfDay(end)
	if err != nil {
		panic(err)
	}
	return schedule.Weekly("weekly", schedule.Days{Weekdays: days}, from, until, mustZone(zone))
}

// cron returns a cron period named "cron".
func cron(zone, expression string, duration time.Duration) schedule.Period {
	c, err := schedule.ParseCron(expression)
	if err != nil {
		panic(err)
	}
	p, err := schedule.Cron("cron", c, duration, mustZone(zone))
	if err != nil {
		panic(err)
	}
	return p
}

// dated returns a period of RFC 3339 texts. Either may be empty.
func dated(name, from, until string) schedule.Period {
	var f, u time.Time
	if from != "" {
		f = utc(from)
	}
	if until != "" {
		u = utc(until)
	}
	p, err := schedule.Dated(name, f, u)
	if err != nil {
		panic(err)
	}
	return p
}

// coverage is a row of a table of what a period covers. Intervals are written as in shortRange, for example
// "2026-06-05T22:00/2026-06-06T05:00".
type coverage struct {
	name   string
	period schedule.Period
	// within bounds the intervals in want, which are separated by spaces.
	within, want string
}

// run compares the row with a plan whose only open period is the period.
func (c coverage) run(t *testing.T) {
	t.Helper()
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{c.period}})
	from, until := parseRange(c.within)
	var got []string
	for i := range plan.Intervals(from, until) {
		if i.State == schedule.Closed {
			continue
		}
		got = append(got, shortRange(i.From, i.Until))
		if i.From.After(from) {
			checkEdge(t, plan, i.From, schedule.Opened)
		}
		if i.Until.Before(until) {
			checkEdge(t, plan, i.Until, schedule.Closed)
		}
	}
	if got := strings.Join(got, " "); got != c.want {
		t.Errorf("covers\n%s, want\n%s", got, c.want)
	}
}

// checkEdge fails unless the state changes at exactly this second.
func checkEdge(t *testing.T, plan *schedule.Plan, edge time.Time, state schedule.State) {
	t.Helper()
	before := plan.Decide(edge.Add(-time.Nanosecond))
	if before.State == state {
		t.Errorf("%s already before %s", state, edge)
	}
	if !before.Next.At.Equal(edge) || before.Next.State != state {
		t.Errorf("just before %s the next transition is %+v", edge, before.Next)
	}
	if got := plan.Decide(edge).State; got != state {
		t.Errorf("%s at %s, want %s", got, edge, state)
	}
}

// newPlan compiles a plan whose searches are unbounded, unless the config has a budget.
func newPlan(c schedule.Config) *schedule.Plan {
	if c.Budget == nil {
		c.Budget = schedule.NewBudget(context.Background(), math.MaxInt)
	}
	return schedule.NewPlan(c)
}
