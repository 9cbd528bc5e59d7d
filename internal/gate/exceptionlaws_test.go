package gate_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// drawHour draws a whole hour of the day of noon or of the next.
func drawHour(t *rapid.T, label string) int { return rapid.IntRange(0, 47).Draw(t, label) }

func hourly(hour int) string {
	return stamp(utc("2026-11-23T00:00:00Z").Add(time.Duration(hour) * time.Hour))
}

func drawPeriod(t *rapid.T, label string) v1alpha1.Period {
	start := rapid.IntRange(0, 22).Draw(t, label+" starts")
	end := rapid.IntRange(start+1, 23).Draw(t, label+" ends")
	return weekly(label, fmt.Sprintf("%02d:00", start), fmt.Sprintf("%02d:30", end))
}

// drawGate draws a Gate of either default with a schedule.
func drawGate(t *rapid.T) *v1alpha1.Gate {
	if rapid.Bool().Draw(t, "opened by default") {
		return production(opened(closePeriods(closing(drawPeriod(t, "close"), ""))))
	}
	return production(closed(windows(drawPeriod(t, "window"))))
}

// drawExceptions draws exceptions of the production Gate. Some overlap, are
// equally old, invalid or of another gate.
func drawExceptions(t *rapid.T) (all []*v1alpha1.GateException) {
	for i := range rapid.IntRange(1, 5).Draw(t, "exceptions") {
		label := fmt.Sprintf("e%d", i)
		from := drawHour(t, label+" from")
		e := exception(called(label), created(rapid.SampledFrom([]string{"2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z"}).Draw(t, label+" created")),
			valid(hourly(from), hourly(from+rapid.IntRange(1, 24).Draw(t, label+" lasts"))))
		does := rapid.SampledFrom([]string{"open", "close", "both", "nothing"}).Draw(t, label+" does")
		if does == "open" || does == "both" {
			opensIn(drawPeriod(t, label+"-open"))(e)
		}
		if does == "close" || does == "both" {
			closesIn(drawPeriod(t, label+"-close"))(e)
		}
		e.Spec.Default = rapid.SampledFrom([]v1alpha1.State{"", "", isClosed, isOpened, "unknown"}).Draw(t, label+" default")
		if rapid.IntRange(0, 2).Draw(t, label+" leads") == 0 {
			lead(2 * time.Hour)(e)
		}
		if rapid.IntRange(0, 9).Draw(t, label+" is of another gate") == 0 {
			ofGate("staging")(e)
		}
		all = append(all, e)
	}
	return all
}

// isInvalidOpening returns whether an exception is invalid and has nothing that closes.
func isInvalidOpening(e *v1alpha1.GateException) bool {
	return len(timetable.ValidateException(e)) > 0 && len(e.Spec.ClosePeriods) == 0 &&
		(e.Spec.Default == isOpened || e.Spec.Default == "" && len(e.Spec.OpenPeriods) > 0)
}

func TestDecisionIsIndependentOfExceptionOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, all := drawGate(t), drawExceptions(t)
		now := utc(hourly(drawHour(t, "now"))).Add(time.Duration(rapid.IntRange(0, 3599).Draw(t, "second")) * time.Second)
		shuffled := rapid.Permutation(all).Draw(t, "order")
		if a, b := gate.Decide(g, now, all...), gate.Decide(g, now, shuffled...); !reflect.DeepEqual(a, b) {
			t.Fatalf("got %+v, in another order %+v", a, b)
		}
		for _, e := range all {
			if a, b := gate.DecideException(e, g, all, now), gate.DecideException(e, g, shuffled, now); !reflect.DeepEqual(a, b) {
				t.Fatalf("%s: got %+v, in another order %+v", e.Name, a, b)
			}
		}
	})
}

func TestExceptionsHaveNoEffectOutsideValidity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, all := drawGate(t), drawExceptions(t)
		for minute := 15; minute < 75*60; minute += 30 {
			now := utc(hourly(0)).Add(time.Duration(minute) * time.Minute)
			if slices.ContainsFunc(all, func(e *v1alpha1.GateException) bool { return !now.Before(e.Spec.ValidFrom.Time) && !e.ExpiredBy(now) }) {
				continue
			}
			with, without := gate.Decide(g, now, all...), gate.Decide(g, now)
			if with.State != without.State || with.Reason != without.Reason {
				t.Fatalf("at %s: %s, without exceptions: %s", now, with.Message, without.Message)
			}
		}
	})
}

// The active exceptions decide as if there were no others, all but one of them only close or are invalid, and the intervals of a preview
// are those of decisions.
func TestActiveExceptionsDecideAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, all := drawGate(t), drawExceptions(t)
		now := utc(hourly(drawHour(t, "now"))).Add(time.Duration(rapid.IntRange(0, 3599).Draw(t, "second")) * time.Second)
		var active []*v1alpha1.GateException
		for _, e := range all {
			if e.Spec.GateRef.Name == g.Name && gate.DecideException(e, g, all, now).Active {
				active = append(active, e)
			}
		}
		others := slices.DeleteFunc(slices.Clone(active), func(e *v1alpha1.GateException) bool { return e.OnlyCloses() || isInvalidOpening(e) })
		if len(others) > 1 {
			t.Fatalf("%s and %s are active", others[0].Name, others[1].Name)
		}
		d, alone := gate.Decide(g, now, all...), gate.Decide(g, now, active...)
		if d.State != alone.State || d.Reason != alone.Reason || d.By != alone.By {
			t.Fatalf("%s, with the active ones alone %s", d.Message, alone.Message)
		}
		if d.Reason == v1alpha1.ExceptionAppliesReason && !slices.ContainsFunc(active, func(e *v1alpha1.GateException) bool { return e.Name == d.By }) {
			t.Fatalf("%s, but that exception is not active", d.Message)
		}
		intervals, errs := gate.Intervals(g, now, now.Add(time.Minute), all...)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		for i := range intervals {
			if i.State.String() != string(d.State) || string(i.Reason) != d.Reason {
				t.Fatalf("%s, the interval says %s by %s", d.Message, i.State, i.Reason)
			}
			break
		}
	})
}
