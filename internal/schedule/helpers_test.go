package schedule_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// utc returns the instant of an RFC 3339 text.
func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
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

// stretch is a row of a table that says when a period covers a part of the
// time line. Its intervals read "from/until" in RFC 3339.
type stretch struct {
	name        string
	period      schedule.Period
	from, until string
	want        []string
}

// run compares the row with a plan whose one window is the period.
func (s stretch) run(t *testing.T) {
	t.Helper()
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{s.period}})
	from, until := utc(s.from), utc(s.until)
	var got []string
	for i := range plan.Intervals(from, until) {
		if i.State == schedule.Closed {
			continue
		}
		got = append(got, fmt.Sprintf("%s/%s", i.From.Format(time.RFC3339), i.Until.Format(time.RFC3339)))
		if i.From.After(from) {
			checkEdge(t, plan, i.From, schedule.Opened)
		}
		if i.Until.Before(until) {
			checkEdge(t, plan, i.Until, schedule.Closed)
		}
	}
	if !slices.Equal(got, s.want) {
		t.Errorf("covers\n%q, want\n%q", got, s.want)
	}
}

// checkEdge fails unless the state turns at the very second.
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
