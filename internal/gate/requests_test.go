package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func handle(g *v1alpha1.Gate, now time.Time) []ledger.Request {
	return gate.ApplyRequests(g, ledger.Unstamped, now)
}

// inForce returns the time of the accepted request for an action.
func inForce(g *v1alpha1.Gate, action v1alpha1.RequestAction) string {
	at := ""
	for _, r := range g.Status.Requests {
		if r.Action == action {
			at = stamp(r.RequestedAt.Time) // what is planned comes last
		}
	}
	return at
}

func TestARequestIsAcceptedOrRefused(t *testing.T) {
	const days = 24 * time.Hour
	for name, tc := range map[string]struct {
		value, accepted, refusal string
	}{
		"now":                         {value: "2026-11-23T12:00:00Z", accepted: "2026-11-23T12:00:00Z"},
		"with an offset":              {value: "2026-11-23T13:00:00+01:00", accepted: "2026-11-23T12:00:00Z"},
		"with fractions of a second":  {value: "2026-11-23T12:00:00.1234567Z", accepted: "2026-11-23T12:00:00.123456Z"},
		"in the past":                 {value: "2026-11-22T12:00:00Z", accepted: "2026-11-22T12:00:00Z"},
		"planned":                     {value: "2026-12-24T12:00:00Z", accepted: "2026-12-24T12:00:00Z"},
		"366 days ahead":              {value: stamp(noon.Add(366 * days)), accepted: stamp(noon.Add(366 * days))},
		"366 days ago":                {value: stamp(noon.Add(-366 * days)), accepted: stamp(noon.Add(-366 * days))},
		"366 days and a second ahead": {value: stamp(noon.Add(366*days + time.Second)), refusal: "at most 366 days from now"},
		"366 days and a second ago":   {value: stamp(noon.Add(-366*days - time.Second)), refusal: "at most 366 days from now"},
		"400 days ahead":              {value: stamp(noon.Add(400 * days)), refusal: "at most 366 days from now"},
		"in the year 9999":            {value: "9999-12-31T23:59:59Z", refusal: "at most 366 days from now"},
		"in the year 1":               {value: "0001-01-01T00:00:00Z", refusal: "at most 366 days from now"},
		"yesterday":                   {value: "yesterday", refusal: "must be TIME[/DURATION], such as 2026-12-19T12:00:00Z/30m"},
		"empty":                       {value: "", refusal: "must be TIME[/DURATION]"},
		"a date only":                 {value: "2026-11-23", refusal: "must be TIME[/DURATION]"},
		"without a zone":              {value: "2026-11-23T12:00:00", refusal: "must be TIME[/DURATION]"},
		"seconds since 1970":          {value: "1795435200", refusal: "must be TIME[/DURATION]"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			annotate(g, v1alpha1.RequestOpen, tc.value)
			handled := handle(g, noon)
			if len(handled) != 1 {
				t.Fatalf("%d requests handled, want 1", len(handled))
			}
			if got := inForce(g, v1alpha1.RequestOpen); got != tc.accepted {
				t.Errorf("accepted %q, want %q", got, tc.accepted)
			}
			if (tc.refusal == "") != (handled[0].Err == nil) || tc.refusal != "" && !strings.Contains(handled[0].Err.Error(), tc.refusal) {
				t.Errorf("got error %v, want %q", handled[0].Err, tc.refusal)
			}
			if (g.LatestRequest() != nil) != (tc.accepted != "") {
				t.Errorf("last request is %v", g.LatestRequest())
			}
			if again := handle(g, noon.Add(time.Hour)); len(again) > 0 {
				t.Errorf("handled again: %v", again)
			}
		})
	}
}

func TestARequestOutlivesItsAnnotation(t *testing.T) {
	g := accepted(t, closed(window(time.Hour)), open("2026-11-23T12:00:00Z"))
	delete(g.Annotations, v1alpha1.OpenRequestedAtAnnotation)
	if handled := handle(g, noon.Add(time.Minute)); len(handled) > 0 {
		t.Errorf("a stripped annotation is handled: %v", handled)
	}
	if d := gate.Decide(g, noon.Add(time.Minute)); d.State != v1alpha1.StateOpened {
		t.Errorf("the gate is %s (%s), want it to stay opened", d.State, d.Reason)
	}
}

func TestARefusedRequestLeavesTheAcceptedOneInForce(t *testing.T) {
	g := accepted(t, closed(), open("2026-11-23T12:00:00Z"))
	for _, value := range []string{"yesterday", stamp(noon.Add(400 * 24 * time.Hour)), "2026-11-23T11:59:59Z"} {
		annotate(g, v1alpha1.RequestOpen, value)
		handled := handle(g, noon.Add(time.Minute))
		if len(handled) != 1 || handled[0].Err == nil || handled[0].Value != value || handled[0].Annotation != v1alpha1.OpenRequestedAtAnnotation {
			t.Errorf("%q: got %+v, want a refusal", value, handled)
		}
		if got := inForce(g, v1alpha1.RequestOpen); got != "2026-11-23T12:00:00Z" {
			t.Errorf("%q: %q is in force", value, got)
		}
		if got := g.LatestRequest().RequestedAt; !got.Time.Equal(utc("2026-11-23T12:00:00Z")) {
			t.Errorf("%q: the last request is that of %s", value, got)
		}
	}
}

func TestAnOldValueThatGitPutsBackIsRefused(t *testing.T) {
	g := accepted(t, opened(window(time.Hour)), shut("2026-11-20T12:00:00Z"), shut("2026-11-23T12:00:00Z"))
	annotate(g, v1alpha1.RequestClose, "2026-11-20T12:00:00Z")
	handled := handle(g, noon.Add(time.Minute))
	if len(handled) != 1 || handled[0].Err == nil || !strings.Contains(handled[0].Err.Error(), "2026-11-23T12:00:00Z") {
		t.Fatalf("got %+v, want a refusal that names the newer request", handled)
	}
	if d := gate.Decide(g, noon.Add(time.Minute)); d.State != v1alpha1.StateClosed {
		t.Errorf("the gate is %s, want it to stay closed", d.State)
	}
}

func TestAPlannedRequestCanBeBroughtForward(t *testing.T) {
	g := accepted(t, closed(),
		open("2026-12-24T00:00:00Z").seen("2026-11-23T12:00:00Z"),
		open("2026-11-23T13:00:00Z").seen("2026-11-23T12:01:00Z"))
	if got := inForce(g, v1alpha1.RequestOpen); got != "2026-11-23T13:00:00Z" {
		t.Errorf("in force is %q", got)
	}
	if d := gate.Decide(g, utc("2026-11-23T13:00:00Z")); d.State != v1alpha1.StateOpened {
		t.Errorf("the gate is %s", d.State)
	}
}

func TestPlanningARequestLeavesTheOneInForceAlone(t *testing.T) {
	later, muchLater := utc("2026-11-23T13:00:00Z"), utc("2026-11-25T00:00:00Z")
	for name, tc := range map[string]struct {
		gate  *v1alpha1.Gate
		plan  request
		state v1alpha1.State
	}{
		"a close that is planned opens nothing":  {accepted(t, opened(), shut("2026-11-23T12:00:00Z")), shut("2026-11-24T12:00:00Z"), v1alpha1.StateClosed},
		"an open that is planned closes nothing": {accepted(t, closed(), open("2026-11-23T12:00:00Z")), open("2026-11-24T12:00:00Z"), v1alpha1.StateOpened},
	} {
		t.Run(name, func(t *testing.T) {
			g := accepted(t, tc.gate, tc.plan.seen("2026-11-23T12:30:00Z"))
			for _, now := range []time.Time{later, utc("2026-11-24T11:59:59Z"), utc("2026-11-24T12:00:00Z"), muchLater} {
				handle(g, now)
				if d := gate.Decide(g, now); d.State != tc.state {
					t.Errorf("at %s it is %s (%s)", stamp(now), d.State, d.Reason)
				}
			}
		})
	}
}

func TestAnOldValueThatGitPutsBackLeavesAPlanAlone(t *testing.T) {
	g := accepted(t, closed(window(time.Hour)),
		open("2026-11-20T12:00:00Z"), open("2026-11-24T12:00:00Z").seen("2026-11-23T12:00:00Z"))
	annotate(g, v1alpha1.RequestOpen, "2026-11-20T12:00:00Z")
	handle(g, utc("2026-11-23T12:01:00Z"))
	if d := gate.Decide(g, utc("2026-11-24T12:00:00Z")); d.State != v1alpha1.StateOpened {
		t.Errorf("the planned release is lost: %s", d.Reason)
	}
}

func TestAReasonIsKeptWithItsRequest(t *testing.T) {
	g := closed()
	g.Annotations = map[string]string{
		v1alpha1.OpenRequestedAtAnnotation: "2026-11-23T12:00:00Z", v1alpha1.OpenReasonAnnotation: "hotfix 42",
		v1alpha1.CloseReasonAnnotation: "not of this one",
	}
	handled := handle(g, noon)
	if len(handled) != 1 || handled[0].Reason != "hotfix 42" {
		t.Errorf("handled %+v", handled)
	}
	last := g.LatestRequest()
	if last == nil || last.Action != v1alpha1.RequestOpen || last.Message != "hotfix 42" ||
		last.Source != v1alpha1.SourceAnnotation || !last.RequestedAt.Time.Equal(utc("2026-11-23T12:00:00Z")) {
		t.Errorf("the last request is %+v", last)
	}
	g.Annotations[v1alpha1.OpenReasonAnnotation] = "hotfix 43"
	if again := handle(g, noon); len(again) > 0 || g.LatestRequest().Message != "hotfix 42" {
		t.Errorf("a reason alone requests something: %+v", again)
	}
}

func TestTwoRequestsAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		open, close string
		state       v1alpha1.State
		last        v1alpha1.RequestAction
	}{
		"the newer one decides: open":             {"2026-11-23T11:01:01Z", "2026-11-23T11:00:00Z", v1alpha1.StateOpened, v1alpha1.RequestOpen},
		"clocks differ by less than a minute":     {"2026-11-23T11:01:00Z", "2026-11-23T11:00:00Z", v1alpha1.StateClosed, v1alpha1.RequestClose},
		"the newer one decides: close":            {"2026-11-23T11:00:00Z", "2026-11-23T11:00:01Z", v1alpha1.StateClosed, v1alpha1.RequestClose},
		"on a tie, close":                         {"2026-11-23T11:00:00Z", "2026-11-23T11:00:00Z", v1alpha1.StateClosed, v1alpha1.RequestClose},
		"on a tie in two zones, close":            {"2026-11-23T12:00:00+01:00", "2026-11-23T11:00:00Z", v1alpha1.StateClosed, v1alpha1.RequestClose},
		"open newer by a microsecond":             {"2026-11-23T11:00:00.000001Z", "2026-11-23T11:00:00Z", v1alpha1.StateClosed, v1alpha1.RequestClose},
		"a planned close does not close yet":      {"2026-11-23T11:00:00Z", "2026-11-23T13:00:00Z", v1alpha1.StateOpened, v1alpha1.RequestClose},
		"a planned open does not end the close":   {"2026-11-23T13:00:00Z", "2026-11-23T11:00:00Z", v1alpha1.StateClosed, v1alpha1.RequestOpen},
		"a refused open leaves the close":         {"tomorrow", "2026-11-23T11:00:00Z", v1alpha1.StateClosed, v1alpha1.RequestClose},
		"a refused close leaves the open request": {"2026-11-23T11:00:00Z", "tomorrow", v1alpha1.StateOpened, v1alpha1.RequestOpen},
	} {
		t.Run(name, func(t *testing.T) {
			for _, g := range []*v1alpha1.Gate{closed(), opened()} {
				annotate(g, v1alpha1.RequestOpen, tc.open)
				annotate(g, v1alpha1.RequestClose, tc.close)
				if handled := handle(g, noon); len(handled) != 2 {
					t.Errorf("%d requests handled", len(handled))
				}
				if d := gate.Decide(g, noon); d.State != tc.state {
					t.Errorf("default %s: the gate is %s, %s", g.Spec.Default, d.State, d.Message)
				}
				if got := g.LatestRequest().Action; got != tc.last {
					t.Errorf("the last request is %s", got)
				}
			}
		})
	}
}

// The controller may come to see both at once, as after a restart.
func TestAnOpenRequestAfterACloseThatWasSeenWithItOpens(t *testing.T) {
	g := accepted(t, closed(), open("2026-11-23T11:00:00.1Z"))
	annotate(g, v1alpha1.RequestClose, "2026-11-23T11:00:00.7Z")
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T11:01:00.8Z")
	if handled := handle(g, noon); len(handled) != 2 {
		t.Fatalf("%d requests handled", len(handled))
	}
	if d := gate.Decide(g, noon); d.State != v1alpha1.StateOpened {
		t.Errorf("the gate is %s: %s", d.State, d.Message)
	}
	if got := g.LatestRequest().Action; got != v1alpha1.RequestOpen {
		t.Errorf("the last request is %s", got)
	}
}

func TestFractionsOfASecondNeverOpenEarlyNorCloseLate(t *testing.T) {
	for name, tc := range map[string]struct {
		gate           *v1alpha1.Gate
		opened, closed []string
	}{
		"open": {
			gate:   accepted(t, closed(window(time.Minute)), open("2026-11-23T12:00:00.5Z").seen("2026-11-23T11:00:00Z")),
			closed: []string{"2026-11-23T12:00:00Z", "2026-11-23T12:00:00.499Z", "2026-11-23T12:01:00.5Z", "2026-11-23T12:01:01Z"},
			opened: []string{"2026-11-23T12:00:01Z", "2026-11-23T12:00:59.999Z"},
		},
		"close": {
			gate:   accepted(t, opened(window(time.Minute)), shut("2026-11-23T12:00:00.5Z").seen("2026-11-23T11:00:00Z")),
			closed: []string{"2026-11-23T12:00:00.5Z", "2026-11-23T12:00:30Z", "2026-11-23T12:01:00.499Z"},
			opened: []string{"2026-11-23T11:59:59.999Z", "2026-11-23T12:01:01Z"},
		},
		"open, then close in the same second": {
			gate:   accepted(t, closed(), open("2026-11-23T12:00:00.2Z"), shut("2026-11-23T12:00:00.7Z")),
			closed: []string{"2026-11-23T12:00:00.7Z", "2026-11-23T12:00:01Z", "2026-11-24T12:00:00Z"},
		},
		"close, then open in the same second": {
			gate:   accepted(t, opened(), shut("2026-11-23T12:00:00.2Z"), open("2026-11-23T12:00:00.7Z")),
			closed: []string{"2026-11-23T12:00:00.2Z", "2026-11-23T12:00:00.699Z"},
			opened: []string{"2026-11-23T12:00:01Z", "2026-11-24T12:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(times []string, want v1alpha1.State) {
				for _, at := range times {
					if d := gate.Decide(tc.gate, utc(at)); d.State != want {
						t.Errorf("at %s the gate is %s, want %s", at, d.State, want)
					}
				}
			}
			check(tc.opened, v1alpha1.StateOpened)
			check(tc.closed, v1alpha1.StateClosed)
		})
	}
}

func TestOpeningAnOpenGateOnceMoreNeverClosesIt(t *testing.T) {
	for name, again := range map[string]string{
		"with fractions of a second": "2026-11-23T12:10:00.5Z",
		"on the second":              "2026-11-23T12:10:00Z",
		"soon after":                 "2026-11-23T12:00:00.7Z",
	} {
		t.Run(name, func(t *testing.T) {
			g := accepted(t, closed(window(time.Hour)), shut("2026-11-23T11:30:00Z"), open("2026-11-23T12:00:00Z"), open(again))
			for _, later := range []time.Duration{0, time.Millisecond, 499 * time.Millisecond, time.Second, 59 * time.Minute} {
				if d := gate.Decide(g, utc(again).Add(later)); d.State != v1alpha1.StateOpened {
					t.Errorf("%s later the gate is %s: %s", later, d.State, d.Message)
				}
			}
			if d := gate.Decide(g, utc(again).Add(time.Hour)); d.State != v1alpha1.StateClosed {
				t.Errorf("after the window the gate is %s: %s", d.State, d.Message)
			}
		})
	}
	g := accepted(t, closed(), open("2026-11-23T12:00:00.2Z"), shut("2026-11-23T12:00:00.4Z"), open("2026-11-23T12:00:00.6Z"))
	if d := gate.Decide(g, utc("2026-11-23T12:00:00.6Z")); d.State != v1alpha1.StateClosed {
		t.Errorf("a gate that is closed opens early: %s", d.Message)
	}
}

func TestAPlannedRequestRenewsAnOpenGateWithoutAGap(t *testing.T) {
	for _, again := range []string{"2026-11-23T12:10:00.3Z/10s", "2026-11-23T12:10:00Z/10s", "2026-11-23T12:10:00.999999Z/10s"} {
		for _, every := range []time.Duration{time.Millisecond, 400 * time.Millisecond, 3 * time.Second} {
			g := accepted(t, closed(), open("2026-11-23T12:00:00Z/1h").seen("2026-11-23T12:00:00Z"), open(again).seen("2026-11-23T12:00:01Z"))
			end := utc("2026-11-23T12:10:10Z")
			for now := utc("2026-11-23T12:09:58.5Z"); now.Before(end); now = now.Add(every) {
				handle(g, now)
				if d := gate.Decide(g, now); d.State != v1alpha1.StateOpened {
					t.Fatalf("%s, looked at every %s: at %s the gate is %s: %s", again, every, now.Format(time.RFC3339Nano), d.State, d.Message)
				}
			}
			if d := gate.Decide(g, end.Add(time.Second)); d.State != v1alpha1.StateClosed {
				t.Errorf("%s: after its window the gate is %s: %s", again, d.State, d.Message)
			}
		}
	}
	shutBetween := accepted(t, closed(), open("2026-11-23T12:00:00Z/1h").seen("2026-11-23T12:00:00Z"), open("2026-11-23T12:10:00.6Z").seen("2026-11-23T12:00:01Z"),
		shut("2026-11-23T12:10:00.3Z"))
	if d := gate.Decide(shutBetween, utc("2026-11-23T12:10:00.6Z")); d.State != v1alpha1.StateClosed {
		t.Errorf("a gate that is closed opens early: %s", d.Message)
	}
}

func TestARequestThatComesBackAfterNonsenseIsNotAppliedAgain(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	put := func(annotation, value string) int {
		g.Annotations = map[string]string{annotation: value}
		now = now.Add(time.Minute)
		return len(handle(g, now))
	}
	put(v1alpha1.OpenRequestedAtAnnotation, "2026-11-22T12:00:30Z/10m")
	put(v1alpha1.OpenRequestedAtAnnotation, "tomorrow")
	put(v1alpha1.CloseRequestedAtAnnotation, "2026-11-22T12:02:30Z")
	if n := put(v1alpha1.OpenRequestedAtAnnotation, "2026-11-22T12:00:30Z/10m"); n != 0 || g.LatestRequest().Action != v1alpha1.RequestClose {
		t.Errorf("%d were handled, the last request is %v", n, g.LatestRequest())
	}
	if n := put(v1alpha1.OpenRequestedAtAnnotation, "2026-11-22T12:00:30Z/20m"); n != 1 {
		t.Error("another window is another request")
	}
}
