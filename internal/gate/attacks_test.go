package gate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// told is a request by a user that the controller observes.
type told struct {
	request
	who string
}

// A close is not lost because a longer close hides it, because of the order in which plans begin, or because the controller was down.
func TestNoCloseIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		gate     *v1alpha1.Gate
		requests []told
		// closedAt are times of the day at which the Gate must be closed.
		closedAt []string
	}{
		"a shorter close that came after the plan to open": {closed(), []told{
			{shut("2026-11-23T12:00:00Z"), "alice"},
			{open("2026-11-23T14:00:00Z").seen("2026-11-23T12:30:00Z"), "bob"},
			{shut("2026-11-23T13:00:00Z/2h"), "carol"},
		}, []string{"14:00:30", "14:59:59"}},
		"a shorter close that is newer than an old open from Git": {closed(), []told{
			{shut("2026-11-23T12:00:00Z"), "alice"},
			{shut("2026-11-23T13:00:00Z/2h"), "carol"},
			{open("2026-11-23T12:30:00Z").seen("2026-11-23T13:10:00Z"), "git"},
		}, []string{"13:10:30"}},
		"a close with a later time than the newest one": {closed(), []told{
			{shut("2026-11-23T12:00:00Z"), "alice"},
			{shut("2026-11-23T11:59:30Z").seen("2026-11-23T12:00:10Z"), "dave, whose clock is behind"},
			{open("2026-11-23T11:59:45Z").seen("2026-11-23T12:00:20Z"), "git"},
		}, []string{"12:00:30"}},
		"a close that was planned after the plan to open, and begins before an older plan": {closed(), []told{
			{shut("2026-11-23T15:00:00Z/6h").seen("2026-11-23T09:00:00Z"), "bob"},
			{open("2026-11-23T16:00:00Z").seen("2026-11-23T10:00:00Z"), "rel"},
			{shut("2026-11-23T14:00:00Z/6h").seen("2026-11-23T11:00:00Z"), "alice"},
		}, []string{"14:00:00", "15:00:00", "16:00:30"}},
		"the plan of somebody else for the same instant, who moves it away": {opened(), []told{
			{shut("2026-11-23T18:00:00+01:00").seen("2026-11-23T12:00:00Z"), "alice"},
			{shut("2026-11-23T17:00:00Z").seen("2026-11-23T12:10:00Z"), "bob"},
			{shut("2026-11-23T20:00:00Z").seen("2026-11-23T12:20:00Z"), "alice"},
		}, []string{"17:30:00"}},
		"a close for the instant of one that somebody has ended": {opened(), []told{
			{shut("2026-11-23T13:00:00+01:00").seen("2026-11-23T12:00:00Z"), "alice"},
			{open("2026-11-23T12:00:20Z"), "bob"},
			{shut("2026-11-23T12:00:00Z").seen("2026-11-23T12:00:25Z"), "carol"},
		}, []string{"12:00:30"}},
		"a close that is over when it is seen has ended the open before it": {closed(), []told{
			{open("2026-11-23T11:50:00Z"), "bob"},
			{shut("2026-11-23T12:00:00Z/10m").seen("2026-11-23T12:30:00Z"), "alice"},
		}, []string{"12:30:00"}},
		"an old plan from Git after somebody has moved it": {closed(), []told{
			{open("2026-11-23T15:00:00Z").seen("2026-11-23T12:00:00Z"), "git"},
			{open("2026-11-23T18:00:00Z").seen("2026-11-23T12:10:00Z"), "alice"},
			{open("2026-11-23T15:00:00Z").seen("2026-11-23T12:20:00Z"), "git"},
		}, []string{"15:00:30", "17:59:59"}},
		"an open from Git that was refused, after another value that was refused": {closed(), []told{
			{shut("2026-11-23T12:10:00Z/50m"), "alice"},
			{open("2026-11-23T12:00:00Z").seen("2026-11-23T12:20:00Z"), "git"},
			{open("tomorrow").seen("2026-11-23T13:05:00Z"), "bob"},
			{open("2026-11-23T12:00:00Z").seen("2026-11-23T13:06:00Z"), "git"},
		}, []string{"13:10:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, r := range tc.requests {
				asked(t, tc.gate, r.request, r.who)
			}
			for _, at := range tc.closedAt {
				at := utc("2026-11-23T" + at + "Z")
				handle(tc.gate, at)
				if d := gate.Decide(tc.gate, at); d.State != isClosed {
					t.Errorf("at %s it is %s: %s", stamp(at), d.State, d.Message)
				}
			}
		})
	}
}

// The controller was away, and sees both at once.
func TestOfTwoThatAreNewAtOnceTheCloseStays(t *testing.T) {
	for name, tc := range map[string]struct{ open, shut, seen string }{
		"beside a longer close":              {"2026-11-23T13:00:00Z", "2026-11-23T13:00:00Z/2h", "2026-11-23T13:05:00Z"},
		"although it is over":                {"2026-11-23T11:50:00Z/1h", "2026-11-23T12:00:00Z/10m", "2026-11-23T12:30:00Z"},
		"although it is over, by two clocks": {"2026-11-23T12:00:50Z/1h", "2026-11-23T12:00:00Z/10m", "2026-11-23T12:30:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			if strings.HasPrefix(name, "beside") {
				asked(t, g, shut("2026-11-23T11:00:00Z"), "alice")
			}
			annotate(g, v1alpha1.RequestOpen, tc.open)
			annotate(g, v1alpha1.RequestClose, tc.shut)
			handle(g, utc(tc.seen))
			if d := gate.Decide(g, utc(tc.seen)); d.State != isClosed {
				t.Errorf("it is %s: %s", d.State, d.Message)
			}
		})
	}
	t.Run("an open that is later than a close that is over", func(t *testing.T) {
		g := closed()
		annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:15:00Z/1h")
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z/10m")
		handle(g, utc("2026-11-23T12:30:00Z"))
		if d := gate.Decide(g, utc("2026-11-23T12:30:00Z")); d.State != isOpened {
			t.Errorf("it is %s: %s", d.State, d.Message)
		}
	})
}

func TestEndedRequestStaysEndedWithLongerWindow(t *testing.T) {
	for name, edit := range map[string]func(*v1alpha1.Gate){
		"a longer one": func(g *v1alpha1.Gate) { g.Spec.Window = duration(24 * time.Hour) },
		"none":         func(g *v1alpha1.Gate) { g.Spec.Window = nil },
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(window(time.Hour))
			asked(t, g, open("2026-11-23T12:00:00Z"), "bob")
			// The controller is down while it ends.
			edit(g)
			for _, at := range []string{"2026-11-23T13:00:00Z", "2026-11-23T15:01:00Z"} {
				handle(g, utc(at))
				if d := gate.Decide(g, utc(at)); d.State != isClosed {
					t.Errorf("an open for an hour from 12:00 is %s at %s: %s", d.State, at, d.Message)
				}
			}
			g = opened(window(time.Hour))
			asked(t, g, shut("2026-11-23T12:00:00Z"), "bob")
			handle(g, utc("2026-11-23T13:00:00Z"))
			edit(g)
			handle(g, utc("2026-11-23T13:01:00Z"))
			if d := gate.Decide(g, utc("2026-11-23T13:01:00Z")); d.State != isOpened {
				t.Errorf("a close for an hour from 12:00 is %s at 13:01: %s", d.State, d.Message)
			}
		})
	}
	t.Run("a close in force lasts longer, although a shorter one came after it", func(t *testing.T) {
		g := opened(window(time.Hour))
		asked(t, g, shut("2026-11-23T12:00:00Z"), "alice")
		asked(t, g, shut("2026-11-23T12:30:00Z/40m"), "bob")
		g.Spec.Window = duration(24 * time.Hour)
		handle(g, utc("2026-11-23T12:31:00Z"))
		if d := gate.Decide(g, utc("2026-11-23T13:15:00Z")); d.State != isClosed || d.Request.By != "alice" {
			t.Errorf("it is %s: %s", d.State, d.Message)
		}
	})
}

// A Gate forgets none of the closes that it keeps, and keeps only as many as there is room for.
func TestManyClosesEachShorterThanTheOneBefore(t *testing.T) {
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

func TestACloseOfAReceiverWhoseClockIsAheadClosesAGateWithAnInvalidSpec(t *testing.T) {
	g := opened()
	was(g, v1alpha1.StateOpened, "", "")
	invalid(&g.Spec)
	annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:50Z")
	by(g, v1alpha1.RequestClose, "GateReceiver ops/alerts", "")
	handle(g, utc("2026-11-23T12:00:10Z"))
	if d := gate.Decide(g, utc("2026-11-23T12:00:10Z")); d.State != isClosed {
		t.Errorf("it is %s: %s", d.State, d.Message)
	}
}

// Its sender would get a success, and the Gate would open hours later.
func TestAWebhookDoesNotOpenAfterACloseOfAClockThatIsFarAhead(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T14:00:00.5Z").seen("2026-11-23T12:00:00Z"), "GateReceiver ops/ahead")
	err := ledger.WriteRequest(g, ledger.Request{Action: v1alpha1.RequestOpen, By: "GateReceiver ops/ci"}, utc("2026-11-23T12:10:00Z"))
	if !errors.Is(err, ledger.ErrAhead) {
		t.Errorf("got %v", err)
	}
}

func TestTheReasonThatAReceiverLeftBehindIsNotThatOfAPerson(t *testing.T) {
	g := opened()
	if err := ledger.WriteRequest(g, ledger.Request{Action: v1alpha1.RequestClose, By: "GateReceiver ops/alerts", Reason: "firing DiskFull"}, noon); err != nil {
		t.Fatal(err)
	}
	handle(g, noon)
	annotate(g, v1alpha1.RequestClose, "2026-11-24T12:00:00Z") // without config/policies nothing stamps it
	handle(g, utc("2026-11-24T12:00:01Z"))
	if last := g.LatestRequest(); last.RequestedBy != "" || last.Message != "" {
		t.Errorf("the last request is %+v", last)
	}
}
