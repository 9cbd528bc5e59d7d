package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func TestSlowClockHoldsOnTime(t *testing.T) {
	t.Parallel()
	const behind = 5 * time.Minute
	w := newWorld(t)
	w.ServerClock = &gatecontroller.ServerClock{Clock: w.FakeClock}
	at := func(d time.Duration) { // by the API server's clock
		w.In(d - behind)
		w.ServerClock.Record(start.Add(d))
	}
	app := w.NewKustomization("apps", nil)
	at(0)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")}})
	w.Reconcile(g)
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, start.Add(hours(1)).UTC().Format(time.RFC3339)+"/1h")
	at(hours(1) - 30*time.Second)
	if next := w.Reconcile(g).RequeueAfter; next > 30*time.Second {
		t.Errorf("requeued after %s", next)
	}
	w.expectOpened(g, app)
	at(hours(1))
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if skew := w.series()["clock_ahead_seconds"]; skew != -behind.Seconds() || !strings.HasSuffix(opened(g), ", "+gate.ClocksDiffer) {
		t.Errorf("the metric is %g, the condition %s", skew, opened(g))
	}
	at(hours(2) + behind)
	w.Reconcile(g)
	w.expectOpened(g, app)
}
