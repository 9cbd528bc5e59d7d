package controllers_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// ahead sets the clock of the world ahead of that of the API server. It counts the requests for the server time.
func (w *world) ahead(by time.Duration) *int {
	asked := 0
	w.ServerTime = func(context.Context) (time.Time, error) {
		asked++
		return w.FakeClock.Now().Add(-by).Truncate(time.Second), nil
	}
	return &asked
}

// timeUnknown makes requests for the server time fail.
func (w *world) timeUnknown() {
	w.ServerTime = func(context.Context) (time.Time, error) { return time.Time{}, errBroken }
}

func TestFastClockReleasesNothingEarly(t *testing.T) {
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
		if looks > 15 || *asked > 3*(looks+1) { // it is reconciled until nothing is written
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

func TestGateStaysClosedWhileServerTimeIsUnknown(t *testing.T) {
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

// The Gate was open while no controller ran, and the first write after that fails.
func TestMissedTransitionIsRetried(t *testing.T) {
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
	w.Resume(other) // its write has not failed
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

// An exception that keeps a Gate closed is not deleted before it has expired by both clocks.
func TestExceptionOverByOneClockStillCloses(t *testing.T) {
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
	for range 2 { // the first reports that it has expired, the second would delete it
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
