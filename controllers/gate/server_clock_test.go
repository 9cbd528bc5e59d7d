package gate

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
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

func TestServerTimeIsReadFromResponses(t *testing.T) {
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
			c := &ServerClock{Clock: clock}
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

// behindServer returns a decider whose clock is behind that of the API server.
func behindServer(behind time.Duration) (d *decider, at func(g *v1alpha1.Gate, server time.Duration) time.Duration) {
	d = newDecider(clocktesting.NewFakePassiveClock(start), -behind)
	d.ServerTime = nil
	d.ServerClock = &ServerClock{Clock: d.clock}
	return d, func(g *v1alpha1.Gate, server time.Duration) time.Duration {
		d.clock.SetTime(start.Add(server - behind))
		d.ServerClock.Record(start.Add(server))
		return d.look(g, start.Add(server))
	}
}

func TestSlowClockClosesOnTimeAndOpensNothingEarly(t *testing.T) {
	const behind = 5 * time.Minute
	closes := v1alpha1.ClosePeriod{Period: dated("freeze", hours(1), hours(2))}
	for name, tc := range map[string]struct {
		periods []v1alpha1.ClosePeriod
		request string
	}{
		"a close period":  {[]v1alpha1.ClosePeriod{closes}, ""},
		"a planned close": {nil, start.Add(hours(1)).Format(time.RFC3339) + "/1h"},
	} {
		t.Run(name, func(t *testing.T) {
			d, at := behindServer(behind)
			g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: tc.periods})
			at(g, 0)
			if tc.request != "" {
				g.Annotations[v1alpha1.CloseRequestedAtAnnotation] = tc.request
			}
			next := at(g, hours(1)-30*time.Second)
			if !isOpened(g) || next > 30*time.Second || !strings.HasSuffix(opened(g), ", "+gate.ClocksDiffer) {
				t.Errorf("before the close: %s, next after %s", opened(g), next)
			}
			at(g, hours(1))
			if isOpened(g) || !strings.HasSuffix(opened(g), ", "+gate.ClocksDiffer) || d.skew() != -behind.Seconds() {
				t.Errorf("at the close: %s, skew %g", opened(g), d.skew())
			}
			if at(g, hours(2)+time.Second); isOpened(g) { // it must also be open by the controller's clock
				t.Errorf("after the close: %s", opened(g))
			}
			if at(g, hours(2)+behind); !isOpened(g) {
				t.Errorf("at the end: %s", opened(g))
			}
			d.ahead = 0
			if d.look(g, start.Add(hours(3))); d.skew() != 0 || strings.Contains(opened(g), gate.ClocksDiffer) {
				t.Errorf("with the right time: %s, skew %g", opened(g), d.skew())
			}
		})
	}
}

// One of several API servers has a wrong clock.
func TestWrongClockLosesNoPlannedClose(t *testing.T) {
	d, _ := behindServer(0)
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateOpened, ClosePeriods: []v1alpha1.ClosePeriod{{Period: dated("freeze", hours(1), hours(2))}}})
	if d.look(g, start); !isOpened(g) {
		t.Fatal(opened(g))
	}
	d.ServerClock.Record(start.Add(90 * time.Minute))
	g.Annotations[v1alpha1.CloseRequestedAtAnnotation] = start.Add(30*time.Minute).Format(time.RFC3339) + "/10m"
	d.look(g, start)
	if d.look(g, start.Add(35*time.Minute)); isOpened(g) { // that date no longer counts
		t.Error(opened(g))
	}
}
