package gate_test

import (
	"fmt"
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

func TestRequestIsAcceptedOrRefused(t *testing.T) {
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
		"yesterday":                   {value: "yesterday", refusal: "must be TIME[/DURATION][,only=KIND/NAME]..., such as 2026-12-19T12:00:00Z/30m"},
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

func TestReasonIsStoredWithRequest(t *testing.T) {
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

func TestConcurrentRequests(t *testing.T) {
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

func TestPlannedRequestRenewsOpenGateWithoutGap(t *testing.T) {
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

// A Gate forgets none of the closes that it keeps, and keeps only as many as there is room for.
func TestManyShrinkingCloses(t *testing.T) {
	g := opened()
	for i := range 30 {
		at := noon.Add(time.Duration(i) * time.Minute)
		if i == 15 {
			asked(t, g, open("2026-11-24T12:00:00Z").seen(stamp(at.Add(-time.Second))), "rel")
		}
		asked(t, g, shut(stamp(at)+"/"+(48*time.Hour-time.Duration(i)*time.Hour).String()).seen(stamp(at)), fmt.Sprint("person ", i))
	}
	if n := len(g.Status.Requests); n > 20 {
		t.Errorf("%d requests are remembered", n)
	}
	handle(g, utc("2026-11-24T12:00:00Z"))
	if d := gate.Decide(g, utc("2026-11-24T12:00:00Z")); d.State != isClosed || d.Request.By != "person 0" {
		t.Errorf("it is %s: %s", d.State, d.Message)
	}
	if next := nextOf(gate.Decide(g, utc("2026-11-24T12:00:00Z"))); next.at != "2026-11-25T12:00:00Z" {
		t.Errorf("it opens at %s", next.at)
	}
}

// says reconciles a Gate, and checks its state.
func says(t *testing.T, g *v1alpha1.Gate, at string, want v1alpha1.State) {
	t.Helper()
	handle(g, utc(at))
	if d := gate.Decide(g, utc(at)); d.State != want {
		t.Errorf("at %s it is %s: %s", at, d.State, d.Message)
	}
}

// With one close more than there is room for, a Gate is no less closed.
func TestCloseOverLimit(t *testing.T) {
	for _, n := range []int{8, 9} {
		g := opened()
		for i := range n {
			at := noon.Add(time.Duration(i) * 2 * time.Minute)
			asked(t, g, shut(stamp(at)+"/"+(48*time.Hour-time.Duration(i)*time.Hour).String()).seen(stamp(at)), fmt.Sprint("p", i))
		}
		newest := noon.Add(time.Duration(n-1) * 2 * time.Minute)
		annotate(g, v1alpha1.RequestOpen, stamp(newest.Add(-time.Minute))) // older than that, and not handled before
		says(t, g, stamp(newest.Add(time.Minute)), isClosed)

		g = opened(window(time.Hour))
		asked(t, g, shut("2026-11-23T12:00:00Z"), "alice")
		for i := 1; i < n; i++ {
			at := noon.Add(time.Duration(i) * time.Minute)
			asked(t, g, shut(stamp(at)+"/"+(3*time.Hour-time.Duration(i)*10*time.Minute).String()).seen(stamp(at)), fmt.Sprint("p", i))
		}
		g.Spec.Window = nil
		says(t, g, "2026-11-23T15:30:00Z", isClosed)
	}
}

// The API server refuses a status with more, and then nothing is decided any more.
func TestAllRecordsFitIntoAnnotation(t *testing.T) {
	const room = 48
	t.Run("pairs by hand", func(t *testing.T) {
		for _, actions := range [][2]v1alpha1.RequestAction{
			{v1alpha1.RequestClose, v1alpha1.RequestOpen}, {v1alpha1.RequestOpen, v1alpha1.RequestClose},
		} {
			g := closed()
			for i := range 2 * room {
				at := noon.Add(time.Duration(i) * 5 * time.Minute)
				annotate(g, actions[0], stamp(at))
				annotate(g, actions[1], stamp(at.Add(61*time.Second)))
				for _, h := range handle(g, at.Add(2*time.Minute)) {
					if h.Err != nil {
						t.Fatal(h.Err)
					}
				}
			}
			if n := len(g.Status.Requests); n > 4 {
				t.Errorf("%d requests are remembered", n)
			}
		}
	})
	t.Run("pairs of webhooks within a minute", func(t *testing.T) {
		g := opened()
		for i := range 2 * room {
			at := noon.Add(time.Duration(i) * time.Second / 2)
			for j, a := range []v1alpha1.RequestAction{v1alpha1.RequestClose, v1alpha1.RequestOpen} {
				r := hook(a)
				r.Window = duration(time.Hour)
				if err := ledger.WriteRequest(g, r, at.Add(time.Duration(j)*100*time.Millisecond)); err != nil {
					t.Fatal(err)
				}
			}
			handle(g, at.Add(200*time.Millisecond))
		}
		if n := len(g.Status.Requests); n > 2*8+1 {
			t.Errorf("%d requests are remembered", n)
		}
	})
}
