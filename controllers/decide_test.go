package controllers_test

import (
	"context"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
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
