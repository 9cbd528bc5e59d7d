package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestTargetPlanHasDefinedStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGate(t)
		if rapid.IntRange(0, 2).Draw(t, "has a hard freeze") == 0 {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, closing(drawPeriod(t, "hard"), "Deny"))
		}
		var scoped, unscoped []*v1alpha1.GateException
		for _, e := range drawExceptions(t) {
			if e.Spec.LeadTime != nil || rapid.Bool().Draw(t, e.Name+" is unscoped") {
				unscoped = append(unscoped, e)
				continue
			}
			only("a")(e)
			scoped = append(scoped, e)
		}
		from, until := utc(hourly(0)), utc(hourly(47))
		all := gate.NewSnapshot(g, nil, slices.Concat(scoped, unscoped)...)
		intervals, errs := all.Intervals(from, until)
		if len(errs) > 0 {
			return
		}
		var parts [][]schedule.Interval
		for _, e := range scoped {
			parts = append(parts, all.ScopedIntervals(e, from, from, until, 1000))
		}
		plan := gate.ForTarget(slices.Collect(intervals), parts...)
		for at := from.Add(time.Second); at.Before(until); at = at.Add(30 * time.Minute) {
			i := slices.IndexFunc(plan, func(i schedule.Interval) bool { return !at.Before(i.From) && at.Before(i.Until) })
			if want := definition(g, "a", at, scoped, unscoped); i < 0 || v1alpha1.State(plan[i].State.String()) != want {
				t.Fatalf("at %s: want %s, got interval %d of %+v", at, want, i, plan)
			}
		}
	})
}

func TestScopedIntervalsAreMergedAndBounded(t *testing.T) {
	e := exception(opensIn(weekly("a", "12:10", "12:20"), weekly("b", "12:20", "12:30"), weekly("c", "12:40", "12:50")), only("a"), valid("2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"))
	other := exception(called("other"), byDefault(isOpened))
	in := gate.NewSnapshot(production(closed()), nil, e, other)
	for limit, want := range map[int]string{1: "12:10-12:20 x ", 9: "12:10-12:30 x 12:40-12:50 x "} {
		got := ""
		for _, i := range in.ScopedIntervals(e, noon, noon, noon.Add(24*time.Hour), limit) {
			got += fmt.Sprintf("%s-%s %s ", i.From.Format("15:04"), i.Until.Format("15:04"), i.By)
		}
		if got != want {
			t.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
	if got := in.ScopedIntervals(other, noon, noon, noon.Add(24*time.Hour), 9); len(got) > 0 {
		t.Errorf("an exception without targets: %+v", got)
	}
}
