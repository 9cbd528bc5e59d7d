package controllers_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// respond is a transport that responds with a header Date and a status, or fails.
type respond struct {
	date   string
	status int
	err    error
}

func (r respond) RoundTrip(*http.Request) (*http.Response, error) {
	if r.err != nil {
		return nil, r.err
	}
	return &http.Response{StatusCode: r.status, Header: http.Header{"Date": {r.date}}}, nil
}

func TestTheServerClockIsReadFromResponses(t *testing.T) {
	date := func(ahead time.Duration) string { return start.Add(ahead).UTC().Format(http.TimeFormat) }
	for name, tc := range map[string]struct {
		responses []respond
		later     time.Duration
		want      time.Duration
	}{
		"behind":                        {responses: []respond{{date: date(5 * time.Minute), status: 200}}, want: 5 * time.Minute},
		"ahead":                         {responses: []respond{{date: date(-5 * time.Minute), status: 200}}},
		"the largest of several":        {responses: []respond{{date: date(2 * time.Second), status: 404}, {date: date(3 * time.Second), status: 200}, {date: date(time.Second), status: 409}}, want: 3 * time.Second},
		"still true after a minute":     {responses: []respond{{date: date(time.Hour), status: 200}}, later: time.Minute, want: time.Hour},
		"forgotten after two":           {responses: []respond{{date: date(time.Hour), status: 200}}, later: 2 * time.Minute},
		"forgotten if the clock is set": {responses: []respond{{date: date(time.Hour), status: 200}}, later: -time.Hour},
		"of a proxy":                    {responses: []respond{{date: date(time.Hour), status: 502}}},
		"no date":                       {responses: []respond{{status: 200}, {date: "soon", status: 200}}},
		"no response":                   {responses: []respond{{err: errors.New("refused")}}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakePassiveClock(start)
			c := &gatecontroller.ServerClock{Clock: clock}
			for _, r := range tc.responses {
				resp, err := c.Wrap(r).RoundTrip(&http.Request{}) //nolint:bodyclose // it has none
				if err == nil && resp.StatusCode != r.status || !errors.Is(err, r.err) {
					t.Errorf("the response is changed: %+v, %v", resp, err)
				}
			}
			clock.SetTime(start.Add(tc.later))
			if got := c.Behind(); got != tc.want {
				t.Errorf("it is behind by %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAControllerWhoseClockIsBehindClosesOnTimeAndOpensNothingEarly(t *testing.T) {
	t.Parallel()
	const behind = 5 * time.Minute
	closes := v1alpha1.ClosePeriod{Period: dated("freeze", hours(1), hours(2))}
	for name, tc := range map[string]struct {
		spec    v1alpha1.GateSpec
		request func(*world, *v1alpha1.Gate)
	}{
		"a close period": {v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{closes}}, func(*world, *v1alpha1.Gate) {}},
		"a planned close": {v1alpha1.GateSpec{Default: v1alpha1.StateOpened}, func(w *world, g *v1alpha1.Gate) {
			w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, start.Add(hours(1)).UTC().Format(time.RFC3339)+"/1h")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ServerClock = &gatecontroller.ServerClock{Clock: w.FakeClock}
			at := func(d time.Duration) time.Duration { // by the API server's clock
				w.In(d - behind)
				w.ServerClock.Record(start.Add(d))
				return d
			}
			app := w.NewKustomization("apps", nil)
			tc.spec.Targets = []v1alpha1.TargetReference{named("apps")}
			at(0)
			g := w.Gate("production", tc.spec)
			w.Reconcile(g)
			tc.request(w, g)
			at(hours(1) - 30*time.Second)
			next := w.Reconcile(g).RequeueAfter
			w.expectOpened(g, app)
			if next > 30*time.Second {
				t.Errorf("the next look is after %s", next)
			}
			if !strings.HasSuffix(opened(g), ", "+gate.ClocksDiffer) {
				t.Errorf("the condition is %s", opened(g))
			}
			at(hours(1))
			w.Reconcile(g)
			w.ExpectHeld(app, g)
			if !strings.HasSuffix(opened(g), ", "+gate.ClocksDiffer) {
				t.Errorf("the condition is %s", opened(g))
			}
			if skew := w.series()["clock_ahead_seconds"]; skew != -behind.Seconds() {
				t.Errorf("the metric says %g", skew)
			}
			at(hours(2) + time.Second) // it opens by its own clock as well
			w.Reconcile(g)
			w.ExpectHeld(app, g)
			at(hours(2) + behind)
			w.Reconcile(g)
			w.expectOpened(g, app)
			// Once the clock is right, nothing says that it is not.
			w.In(hours(3))
			w.Reconcile(g)
			if skew := w.series()["clock_ahead_seconds"]; skew != 0 || strings.Contains(opened(g), ", "+gate.ClocksDiffer) {
				t.Errorf("the metric says %g, the condition %s", skew, opened(g))
			}
		})
	}
}

func TestAWrongDateLosesNoNewPlannedClose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ServerClock = &gatecontroller.ServerClock{Clock: w.FakeClock}
	app := w.NewKustomization("apps", nil)
	freeze := v1alpha1.ClosePeriod{Period: dated("freeze", hours(1), hours(2))}
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{freeze}, Targets: []v1alpha1.TargetReference{named("apps")},
	})
	w.In(0)
	w.Reconcile(g)
	w.expectOpened(g, app)
	w.ServerClock.Record(start.Add(90 * time.Minute)) // one server of several has a wrong clock
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, start.Add(30*time.Minute).UTC().Format(time.RFC3339)+"/10m")
	w.Reconcile(g)
	w.In(35 * time.Minute) // that Date is forgotten
	w.Reconcile(g)
	w.ExpectHeld(app, g)
}
