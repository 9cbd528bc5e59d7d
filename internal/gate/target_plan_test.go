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
	"github.com/fluxcd/gating-controller/internal/verdict"
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
		scopes, reached := all.Scoped(from, from, until, 1000)
		if !reached.IsZero() {
			t.Fatalf("it ends at %s", reached)
		}
		plan := gate.ForTarget(slices.Collect(intervals), scopes)
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
	other := exception(called("other"), byDefault(isOpened)) // without targets
	in := gate.NewSnapshot(production(closed()), nil, e, other)
	for limit, want := range map[int]string{2: "12:10-12:20 x until 12:20", 5: "12:10-12:30 x 12:40-12:50 x until 12:50", 6: "12:10-12:30 x 12:40-12:50 x until 00:00"} {
		got := ""
		all, reached := in.Scoped(noon, noon, noon.Add(24*time.Hour), limit)
		for _, i := range all {
			got += fmt.Sprintf("%s-%s %s ", i.From.Format("15:04"), i.Until.Format("15:04"), i.By)
		}
		got += "until " + reached.Format("15:04")
		if got != want {
			t.Errorf("limit %d: got %q, want %q", limit, got, want)
		}
	}
}

// The plan for a target must match the states that the controller later gives the target, if nothing else happens.
func TestTargetPlanIsDecidedLater(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGate(t)
		g.Generation, g.Status.ObservedGeneration = 1, 1
		if rapid.IntRange(0, 2).Draw(t, "has a hard freeze") == 0 {
			g.Spec.ClosePeriods = append(g.Spec.ClosePeriods, closing(drawPeriod(t, "hard"), "Deny"))
		}
		now := utc(hourly(drawHour(t, "start")))
		for i := range rapid.IntRange(1, 5).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.IntRange(2, 60).Draw(t, fmt.Sprintf("minutes before %d", i))) * time.Minute)
			planned := time.Duration(rapid.SampledFrom([]int{0, 0, 45, 45, 130}).Draw(t, fmt.Sprintf("minutes ahead %d", i))) * time.Minute
			r := drawLimited(t, now.Add(planned), i)
			annotate(g, r.action, r.value)
			handle(g, now)
		}
		exceptions := drawExceptions(t)
		for _, e := range exceptions {
			if e.Spec.LeadTime == nil && rapid.Bool().Draw(t, e.Name+" is scoped") {
				only("a", "b")(e)
			}
		}
		in, until := gate.NewSnapshot(g, nil, exceptions...), now.Add(12*time.Hour)
		intervals, errs := in.Intervals(now, until)
		if len(errs) > 0 {
			return
		}
		whole := slices.Collect(intervals)
		scoped, _ := in.Scoped(now, now, until, 1000)
		scope := verdict.Scope{Reaches: func(string, string) bool { return true }}
		for _, name := range []string{"a", "b", "c", "d"} {
			obj := kustomization(name)
			plan := gate.ForTarget(whole, slices.DeleteFunc(slices.Clone(scoped), func(s gate.Scoped) bool {
				return !slices.ContainsFunc(s.Targets, func(ref v1alpha1.TargetReference) bool { return scope.Names(&ref, g.Namespace, obj) })
			}))
			for at := now; at.Before(until); at = at.Add(15 * time.Minute) {
				after, _ := resolved(g, at, exceptions...)
				want := verdict.Governing("", scope.ForTarget(after, obj), at).Effect == verdict.Open
				i := slices.IndexFunc(plan, func(i schedule.Interval) bool { return !at.Before(i.From) && at.Before(i.Until) })
				if i < 0 || (plan[i].State == schedule.Opened) != want {
					t.Fatalf("%s at %s: open %t, got interval %d of %+v; scoped %+v; requests %+v", name, at, want, i, plan, scoped, g.Status.Requests)
				}
			}
		}
	})
}

// Close periods with override: Deny change each minute for 90 days. Only changes while the exception or the request decides are followed.
func TestScopedIntervalsTakeBoundedWork(t *testing.T) {
	minutes := cron("hard", "*/2 * * * *", time.Minute)
	from, until := utc("2026-11-23T12:00:00Z"), utc("2027-02-21T12:00:00Z")
	late := until.Add(-24 * time.Hour)
	opens := func(p v1alpha1.Period) *v1alpha1.GateException {
		return exception(opensIn(p), only("a"), valid("2026-11-23T12:00:00Z", "2027-02-21T12:00:00Z"), func(e *v1alpha1.GateException) { e.Spec.TimeZone = "UTC" })
	}
	for name, tc := range map[string]struct {
		exceptions []*v1alpha1.GateException
		request    string
		reached    time.Time
		intervals  int
	}{
		"at the end":          {[]*v1alpha1.GateException{opens(dated("late", stamp(late), stamp(until)))}, "", late.Add(99 * time.Minute), 49},
		"in the same minutes": {[]*v1alpha1.GateException{opens(minutes)}, "", from.Add(100 * time.Minute), 0},
		"a request":           {nil, "/96h,only=Kustomization/b", from.Add(100 * time.Minute), 50},
	} {
		g := production(closed(closePeriods(closing(minutes, "Deny"))))
		if tc.request != "" {
			annotate(g, v1alpha1.RequestOpen, stamp(from)+tc.request)
			handle(g, from)
		}
		in := gate.NewSnapshot(g, nil, tc.exceptions...)
		if errs := in.Errors(); len(errs) > 0 {
			t.Fatal(errs)
		}
		if all, reached := in.Scoped(from, from, until, 100); !reached.Equal(tc.reached) || len(all) != tc.intervals {
			t.Errorf("%s: got %d intervals until %s, want %d until %s", name, len(all), reached, tc.intervals, tc.reached)
		}
	}
}
