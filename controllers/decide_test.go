package controllers_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// ahead has the clock of the world be ahead of that of the API server, and counts how
// often the latter is asked for.
func (w *world) ahead(by time.Duration) *int {
	asked := 0
	w.ServerTime = func(context.Context) (time.Time, error) {
		asked++
		return w.FakeClock.Now().Add(-by).Truncate(time.Second), nil
	}
	return &asked
}

// timeUnknown has the API server not say what time it is.
func (w *world) timeUnknown() {
	w.ServerTime = func(context.Context) (time.Time, error) { return time.Time{}, errBroken }
}

func TestAControllerWhoseClockIsAheadReleasesNothingEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := w.ahead(2 * time.Second)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")}, OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))},
	})
	w.Reconcile(g)
	w.Writes.Take("")
	w.Events.Take("")
	for now, looks := hours(1), 0; now < hours(1)+2*time.Second; looks++ {
		w.In(now)
		now += w.Reconcile(g).RequeueAfter
		w.ExpectHeld(app, g)
		if looks > 15 || *asked > 3*(looks+1) { // it is looked at until nothing is written
			t.Fatalf("looked %d times, asked %d times", looks, *asked)
		}
	}
	want := "False OutsideOpenPeriods: Gate closed outside its open periods, scheduled for opening at 2026-11-23T13:00:00Z by 'nights'" + ", " + gate.ClocksDiffer
	if got := opened(g); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if writes := w.Writes.Take(""); !slices.Equal(writes, []string{"patch-status Gate/production"}) {
		t.Errorf("written while it waits: %q", writes)
	}
	if events := w.Events.Take(""); len(events) > 0 {
		t.Errorf("events while it waits: %q", events)
	}
	if skew := w.series()["clock_ahead_seconds"]; skew < 1 || skew > 2 {
		t.Errorf("the metric says %g", skew)
	}
	w.In(hours(1) + 2*time.Second)
	w.Reconcile(g)
	w.expectOpened(g, app)
	if strings.Contains(opened(g), ", "+gate.ClocksDiffer) {
		t.Error(opened(g))
	}
	before := *asked
	for _, at := range []float64{1.5, 2, 2.5} {
		w.In(hours(at))
		w.Reconcile(g)
	}
	w.ExpectHeld(app, g)
	if *asked != before {
		t.Errorf("asked %d times without an opening", *asked-before)
	}
}

func TestAnOpenRequestIsNotDelayedByTheOtherClock(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]time.Duration{"at a full second": 0, "within a second": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			asked := w.ahead(0)
			app := w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			w.Reconcile(g)
			w.In(at)
			w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, w.FakeClock.Now().Format(time.RFC3339)) // as date writes it
			w.Reconcile(g)
			w.expectOpened(g, app)
			if *asked != 1 {
				t.Errorf("asked %d times", *asked)
			}
		})
	}
}

// A Gate that is new holds what it governs if it is not yet open by the other clock.
func TestANewGateAsksForTheTimeAsWell(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ahead(2 * time.Second)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")}, OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))},
	})
	w.In(hours(1) + time.Second)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
}

func TestAGateStaysClosedWhileNobodySaysWhatTimeItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", all())
	w.Reconcile(g)
	w.timeUnknown()
	w.Open(g, start)
	late := w.NewKustomization("late", nil)
	if result, err := w.Try(g); err == nil || result.RequeueAfter <= 0 {
		t.Errorf("%v, %v", result, err)
	}
	w.ExpectHeld(app, g)
	w.ExpectHeld(late, g)
	if got := opened(g); got != "False TimeUnknown: Gate stays closed, the API server does not return its time" {
		t.Error(got)
	}
	if ready := conditions.Get(g, "Ready"); ready.Status != "False" || ready.Reason != v1alpha1.TimeUnknownReason || !strings.Contains(ready.Message, errBroken.Error()) {
		t.Errorf("Ready: %+v", ready)
	}
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "") // as Flux does
	w.ahead(0)
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.timeUnknown()
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.Edit(g, func() { g.Spec.Interval = *duration(hours(2)) })
	if result, err := w.Try(g); err == nil || result.RequeueAfter <= 0 {
		t.Errorf("what changed is not asked for again: %v, %v", result, err)
	}
	w.expectOpened(g, app)
}

// The cause of its question may be over by then, and nobody must forget that there was no answer.
func TestAGateThatIsOpenAsksUntilSomebodySaysWhatTimeItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")},
		ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(1)+10*time.Minute)},
	})
	w.Reconcile(g)
	w.In(hours(1) + 14*time.Minute)
	w.timeUnknown()
	for range 2 {
		if _, err := w.Try(g); err == nil {
			t.Error("it is not asked for again")
		}
	}
	w.ahead(15 * time.Minute)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
}

// The Gate was due to open and did not, which is not an opening that was missed.
func TestWhatWasResumedGoesOnWhileNobodySaysWhatTimeItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{named("apps")},
		OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))},
	})
	w.Reconcile(g)
	w.Resume(app)
	w.Reconcile(g)
	w.timeUnknown()
	w.In(hours(1))
	if _, err := w.Try(g); err == nil || w.Suspended(app) {
		t.Errorf("held again: %t, %v", w.Suspended(app), err)
	}
	if events := w.Events.Take("HeldAgain"); len(events) > 0 {
		t.Error(events)
	}
}

// The Gate was open while nobody looked, and the write that makes up for it fails.
func TestWhatWasMissedIsMadeUpForAlsoIfThatFailsAtFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, other := w.NewKustomization("apps", nil), w.NewKustomization("other", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Mode: v1alpha1.ModeLenient, Targets: []v1alpha1.TargetReference{all()},
		OpenPeriods: []v1alpha1.Period{dated("nights", hours(1), hours(2))},
	})
	w.Reconcile(g)
	w.Resume(app)
	w.Reconcile(g)
	w.In(hours(3))
	w.Writes.Before = func(write string) error {
		if write == "apply Kustomization/apps" {
			return errBroken
		}
		return nil
	}
	if _, err := w.Try(g); err == nil || w.Suspended(app) {
		t.Fatalf("held: %t, %v", w.Suspended(app), err)
	}
	w.Writes.Before = nil
	w.Resume(other) // which has not failed
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if w.Suspended(other) {
		t.Error("what was resumed after that is held again")
	}
	w.Resume(app)
	w.Reconcile(g)
	if w.Suspended(app) {
		t.Error("it is held again for ever")
	}
}

// A clock that is ahead sees the end of a short close period, and the clock of the API
// server not even its beginning.
func TestAClosePeriodThatIsOverByOneClockOnlyIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ahead(5 * time.Second)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")},
		ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(1)+2*time.Second)},
	})
	w.Reconcile(g)
	w.In(hours(1))
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	for now := hours(1) + 2*time.Second; now < hours(1)+7*time.Second; {
		w.In(now)
		now += w.Reconcile(g).RequeueAfter
		w.ExpectHeld(app, g)
	}
	w.In(hours(1) + 7*time.Second)
	w.Reconcile(g)
	w.expectOpened(g, app)
}

// An exception that keeps a Gate closed is not deleted before it is over by both clocks.
func TestAnExceptionThatIsOverByOneClockOnlyStillCloses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ahead(2 * time.Second)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{named("apps")}, OpenPeriods: []v1alpha1.Period{dated("nights", hours(0), hours(2))},
	})
	e := w.exception("holiday", closingIt, 0, hours(1), func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(0) })
	w.In(time.Minute)
	w.reportOn(e)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.In(hours(1))
	for range 2 { // the first reports that it is over, the second would delete it
		w.reportOn(e)
	}
	if w.gone(e) || !e.DeletionTimestamp.IsZero() {
		t.Fatal("deleted by one clock")
	}
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.In(hours(1) + 2*time.Second)
	w.reportOn(e)
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.reportOn(e) // its finalizer waited for the Gate
	if !w.gone(e) {
		t.Error("it is still there")
	}
}

// Two replicas lead in turn, and what the one has noted of a request the other goes on
// with.
func TestAPlannedReleaseOutlivesTheReplicaThatSawIt(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]time.Duration{"the one ahead leads first": 2 * time.Second, "the one behind leads first": -2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			lead := func(ahead, now time.Duration) {
				w.In(now + ahead)
				w.ahead(ahead)
				w.Reconcile(g)
			}
			lead(first, 0)
			w.Open(g, start.Add(time.Minute))
			lead(first, time.Second)
			w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "") // as Flux does
			for _, before := range []time.Duration{2 * time.Second, time.Second, time.Millisecond} {
				for _, ahead := range []time.Duration{first, -first} {
					lead(ahead, time.Minute-before)
					w.ExpectHeld(app, g)
				}
			}
			lead(first, time.Minute+2*time.Second)
			w.expectOpened(g, app)
			lead(-first, time.Minute+2*time.Second)
			w.expectOpened(g, app)
		})
	}
}

// The clock of the API server shows no fractions: a request of this second, which takes
// the place of one in force, is not one for later that ends it.
func TestAnOpenRequestThatIsRenewedWithinASecondDoesNotCloseTheGate(t *testing.T) {
	t.Parallel()
	for name, ahead := range map[string]time.Duration{
		"clocks in step": 0, "the controller ahead": 300 * time.Millisecond, "far ahead": 5 * time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := clocktesting.NewFakePassiveClock(start)
			r := newDecider(server, ahead)
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "flux-system", Annotations: map[string]string{}}}
			g.Spec.Default, g.Spec.Window = v1alpha1.StateClosed, duration(time.Hour)
			look := func(at time.Duration) {
				server.SetTime(start.Add(at))
				r.look(g, server.Now())
			}
			g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = start.Format(time.RFC3339)
			look(time.Second)
			again := start.Add(30*time.Minute + 500*time.Millisecond)
			g.Annotations[v1alpha1.OpenRequestedAtAnnotation] = again.Format(time.RFC3339Nano)
			for _, at := range []time.Duration{520, 900, 1100, 2000} {
				if look(30*time.Minute + at*time.Millisecond); !isOpened(g) {
					t.Errorf("%d ms after: %s", at, opened(g))
				}
			}
			if look(89 * time.Minute); !isOpened(g) {
				t.Errorf("not renewed: %s", opened(g))
			}
		})
	}
}
