package gate_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// asked makes a request as a user or a GateReceiver, and returns why it is refused, empty if it is accepted.
func asked(t *testing.T, g *v1alpha1.Gate, r request, who string) string {
	t.Helper()
	annotate(g, r.action, r.at)
	by(g, r.action, who, "")
	handled := handle(g, utc(r.now))
	if len(handled) != 1 || handled[0].Action != r.action {
		t.Fatalf("%s at %s: handled %+v", r.action, r.at, handled)
	}
	if handled[0].Err != nil {
		return handled[0].Err.Error()
	}
	return ""
}

func TestACloseOnlyExtendsTheClosesInForce(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second     request
		firstBy, secondBy string
		// until is when the Gate opens, empty for never. decides is the requester in the message.
		until, decides string
	}{
		"an indefinite close is not ended by one of a second that is a second later": {
			shut("2026-11-23T12:00:00Z"), shut("2026-11-23T12:00:01Z/1h1s").seen("2026-11-23T13:00:00Z"), "alice", "bob", "", "alice"},
		"a shorter close of somebody else changes nothing": {
			shut("2026-11-23T12:00:00Z/2h"), shut("2026-11-23T12:30:00Z/10m"), "alice", "bob", "2026-11-23T14:00:00Z", "alice"},
		"a shorter close of the same person changes nothing": {
			shut("2026-11-23T12:00:00Z/2h"), shut("2026-11-23T12:30:00Z/10m"), "alice", "alice", "2026-11-23T14:00:00Z", "alice"},
		"a longer close extends": {
			shut("2026-11-23T12:00:00Z/1h"), shut("2026-11-23T12:30:00Z/1h"), "alice", "bob", "2026-11-23T13:30:00Z", "bob"},
		"an indefinite close extends": {
			shut("2026-11-23T12:00:00Z/1h"), shut("2026-11-23T12:30:00Z"), "alice", "bob", "", "bob"},
		"a short close of an alert does not end the freeze of a person": {
			shut("2026-11-23T12:00:00Z"), shut("2026-11-23T12:30:00.5Z/1m"), "alice", "GateReceiver ops/alerts", "", "alice"},
		"a short close of a person does not end the freeze of an alert": {
			shut("2026-11-23T12:00:00.5Z"), shut("2026-11-23T12:30:00Z/1m"), "GateReceiver ops/alerts", "alice", "", "GateReceiver ops/alerts"},
	} {
		t.Run(name, func(t *testing.T) {
			g := opened()
			for _, refused := range []string{asked(t, g, tc.first, tc.firstBy), asked(t, g, tc.second, tc.secondBy)} {
				if refused != "" {
					t.Fatal(refused)
				}
			}
			d := gate.Decide(g, utc(tc.second.now))
			if d.State != v1alpha1.StateClosed || d.Request == nil || d.Request.By != tc.decides || !strings.HasSuffix(d.Message, "by "+tc.decides) {
				t.Errorf("it is %s: %s, want closed by %s", d.State, d.Message, tc.decides)
			}
			if next := nextOf(d); next.at != tc.until {
				t.Errorf("it opens at %q, want %q", next.at, tc.until)
			}
			if g.LatestRequest().RequestedBy != tc.secondBy {
				t.Errorf("the request accepted last is of %s", g.LatestRequest().RequestedBy)
			}
			for at := utc(tc.second.now); at.Before(noon.Add(4 * time.Hour)); at = at.Add(time.Minute) {
				open := tc.until != "" && !at.Before(utc(tc.until))
				if d := gate.Decide(g, at); (d.State == v1alpha1.StateOpened) != open {
					t.Fatalf("at %s it is %s: %s", stamp(at), d.State, d.Message)
				}
			}
		})
	}
}

func TestTheNewestArrivalDecidesNotTheTimeItClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second     request
		firstBy, secondBy string
		state             v1alpha1.State
	}{
		"a person closes with a whole second just after a webhook has opened": {
			open("2026-11-23T12:00:00.5Z"), shut("2026-11-23T12:00:00Z").seen("2026-11-23T12:00:00.9Z"), "GateReceiver ops/ci", "alice", isClosed},
		"a laptop that is 20 seconds behind closes": {
			open("2026-11-23T12:00:00Z"), shut("2026-11-23T11:59:50Z").seen("2026-11-23T12:00:10Z"), "bob", "alice", isClosed},
		"a laptop that is hours behind closes": {
			open("2026-11-23T12:00:00Z"), shut("2026-11-23T09:00:00Z").seen("2026-11-23T12:00:10Z"), "bob", "alice", isClosed},
		"a laptop that is 20 seconds behind closes after another close": {
			shut("2026-11-23T12:00:00Z/15s"), shut("2026-11-23T11:59:50Z").seen("2026-11-23T12:00:10Z"), "bob", "alice", isClosed},
		"a person opens": {
			shut("2026-11-23T12:00:00Z"), open("2026-11-23T12:00:01Z").seen("2026-11-23T12:00:02Z"), "bob", "alice", isOpened},
		"a receiver whose clock is ahead closes at once": {
			open("2026-11-23T12:00:00Z"), shut("2026-11-23T12:00:50Z").seen("2026-11-23T12:00:10Z"), "bob", "GateReceiver ops/alerts", isClosed},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			for _, refused := range []string{asked(t, g, tc.first, tc.firstBy), asked(t, g, tc.second, tc.secondBy)} {
				if refused != "" {
					t.Fatal(refused)
				}
			}
			for _, later := range []time.Duration{0, time.Second, 30 * time.Second, time.Hour} {
				at := utc(tc.second.now).Add(later)
				handle(g, at)
				d := gate.Decide(g, at)
				if d.State != tc.state || d.Request == nil || d.Request.By != tc.secondBy {
					t.Errorf("%s later it is %s: %s", later, d.State, d.Message)
				}
			}
		})
	}
}

func TestRequestWithoutEffectOnCloseIsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		close, other     request
		closeBy, otherBy string
		refused          string
	}{
		"a webhook does not open what a person has closed": {
			shut("2026-11-23T12:00:00Z"), open("2026-11-23T12:30:00.5Z"), "alice", "GateReceiver ops/ci",
			"is refused, a user has closed the gate, and a webhook cannot end that: close requested at 2026-11-23T12:00:00Z by alice"},
		"an open that is not later than the close": {
			shut("2026-11-23T12:00:00Z"), open("2026-11-23T12:00:00Z").seen("2026-11-23T12:30:00Z"), "alice", "bob",
			"is refused, its time is not later than that of a close request in force, request it again: close requested at 2026-11-23T12:00:00Z by alice"},
		"a close that was over before it was seen, by either clock": {
			shut("2026-11-23T12:00:00Z"), shut("2026-11-23T12:10:00Z/5m").seen("2026-11-23T12:16:00Z"), "alice", "bob",
			"is refused, it ended at 2026-11-23T12:15:00Z, request it again"},
		"an open that was over before it was seen": {
			shut("2026-11-23T12:00:00Z"), open("2026-11-23T12:10:00Z/5m").seen("2026-11-23T12:15:00Z"), "alice", "bob",
			"is refused, it ended at 2026-11-23T12:15:00Z, request it again"},
	} {
		t.Run(name, func(t *testing.T) {
			g := opened()
			if refused := asked(t, g, tc.close, tc.closeBy); refused != "" {
				t.Fatal(refused)
			}
			before := *g.Status.DeepCopy()
			if refused := asked(t, g, tc.other, tc.otherBy); refused != tc.refused {
				t.Errorf("got  %q\nwant %q", refused, tc.refused)
			}
			if d := gate.Decide(g, utc(tc.other.now)); d.State != isClosed || d.Request.By != tc.closeBy {
				t.Errorf("it is %s: %s", d.State, d.Message)
			}
			if fmt.Sprint(before.Requests) != fmt.Sprint(g.Status.Requests) {
				t.Errorf("a refused request changes %+v to %+v", before, g.Status)
			}
		})
	}
}

func TestAnOpenOfAPersonEndsAllClosesAndOneOfAWebhookThoseOfWebhooks(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T12:00:00.5Z"), "GateReceiver ops/alerts")
	asked(t, g, shut("2026-11-23T12:01:00Z/10m"), "alice")
	if refused := asked(t, g, open("2026-11-23T12:02:00.5Z"), "GateReceiver ops/alerts"); !strings.Contains(refused, "by alice") {
		t.Errorf("refused: %q", refused)
	}
	if d := gate.Decide(g, utc("2026-11-23T12:30:00Z")); d.State != isClosed {
		t.Errorf("the close of the webhook is gone as well: %s", d.Message)
	}
	if refused := asked(t, g, open("2026-11-23T12:31:00.5Z"), "GateReceiver ops/alerts"); refused != "" {
		t.Errorf("the close of alice is over, and still: %s", refused)
	}
	if d := gate.Decide(g, utc("2026-11-23T12:31:01Z")); d.State != isOpened {
		t.Errorf("it is %s: %s", d.State, d.Message)
	}
	asked(t, g, shut("2026-11-23T12:40:00.5Z"), "GateReceiver ops/alerts")
	asked(t, g, shut("2026-11-23T12:41:00Z"), "alice")
	if refused := asked(t, g, open("2026-11-23T12:42:00Z"), "bob"); refused != "" {
		t.Error(refused)
	}
	if d := gate.Decide(g, utc("2026-11-23T12:42:00Z")); d.State != isOpened || len(g.Status.Requests) != 3 {
		t.Errorf("it is %s: %s, %+v", d.State, d.Message, g.Status.Requests)
	}
}

func TestTheNameThatAReceiverLeftBehindIsNotThatOfAPerson(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T12:00:00.5Z/1m"), "GateReceiver ops/alerts")
	annotate(g, v1alpha1.RequestClose, "2026-11-23T12:05:00Z") // as the docs have it, without a name
	handle(g, utc("2026-11-23T12:05:00Z"))
	if last := g.LatestRequest(); last.RequestedBy != "" || last.Source != v1alpha1.SourceAnnotation {
		t.Errorf("the last request is %+v", last)
	}
	if refused := asked(t, g, open("2026-11-23T12:06:00.5Z"), "GateReceiver ops/alerts"); !strings.Contains(refused, "a webhook cannot end") {
		t.Errorf("refused: %q", refused)
	}
}

func TestPlannedOpenDoesNotEndLaterClose(t *testing.T) {
	g := opened()
	asked(t, g, open("2026-11-23T18:00:00Z").seen("2026-11-23T12:00:00Z"), "release manager")
	asked(t, g, shut("2026-11-23T17:00:00Z"), "alice")
	if next := nextOf(gate.Decide(g, utc("2026-11-23T17:00:00Z"))); next.at != "" {
		t.Errorf("it is to open at %s", next.at)
	}
	handled := handle(g, utc("2026-11-23T18:00:00Z"))
	if len(handled) != 1 || handled[0].Err == nil || handled[0].Action != v1alpha1.RequestOpen ||
		handled[0].Annotation != v1alpha1.OpenRequestedAtAnnotation || handled[0].Value != "2026-11-23T18:00:00Z" ||
		!strings.HasPrefix(handled[0].Err.Error(), "is refused, a user has closed the gate since this was planned: close requested") {
		t.Errorf("handled %+v", handled)
	}
	if d := gate.Decide(g, utc("2026-11-23T18:00:00Z")); d.State != isClosed || d.Request.By != "alice" {
		t.Errorf("it is %s: %s", d.State, d.Message)
	}
	// A close from before the plan is lifted.
	asked(t, g, open("2026-11-23T20:00:00Z").seen("2026-11-23T19:00:00Z"), "release manager")
	if next := nextOf(gate.Decide(g, utc("2026-11-23T19:00:00Z"))); next.at != "2026-11-23T20:00:00Z" {
		t.Errorf("it is to open at %q", next.at)
	}
	if handled := handle(g, utc("2026-11-23T20:00:00Z")); len(handled) != 0 || gate.Decide(g, utc("2026-11-23T20:00:00Z")).State != isOpened {
		t.Errorf("handled %+v", handled)
	}
}

func TestPlannedCloseIsReplacedOnlyByItsRequester(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T18:00:00Z").seen("2026-11-23T12:00:00Z"), "alice")
	asked(t, g, shut("2026-11-23T20:00:00Z/1s").seen("2026-11-23T12:01:00Z"), "bob")
	if next := nextOf(gate.Decide(g, utc("2026-11-23T12:01:00Z"))); next.at != "2026-11-23T18:00:00Z" {
		t.Errorf("the freeze of alice is moved to %q", next.at)
	}
	asked(t, g, shut("2026-11-23T19:00:00Z").seen("2026-11-23T12:02:00Z"), "alice")
	if next := nextOf(gate.Decide(g, utc("2026-11-23T12:02:00Z"))); next.at != "2026-11-23T19:00:00Z" {
		t.Errorf("alice moves her freeze, and it is at %q", next.at)
	}
	for i := range 6 {
		if refused := asked(t, g, shut(fmt.Sprintf("2026-11-24T0%d:00:00Z", i)).seen("2026-11-23T12:03:00Z"), fmt.Sprint("person ", i)); refused != "" {
			t.Fatal(refused)
		}
	}
	const full = "must wait: 8 users have planned close requests, which is the maximum"
	if refused := asked(t, g, shut("2026-11-24T12:00:00Z").seen("2026-11-23T12:04:00Z"), "one too many"); refused != full {
		t.Errorf("refused: %q", refused)
	}
	if refused := asked(t, g, shut("2026-11-24T13:00:00Z").seen("2026-11-23T12:05:00Z"), "alice"); refused != "" {
		t.Errorf("a plan of her own is no more: %s", refused)
	}
}

// Only a user with permission, or the end of a close, opens a closed Gate. The model keeps all requests, but the ledger must drop most of
// them.
func TestManualCloseStaysClosed(t *testing.T) {
	type closing struct {
		until   time.Time // zero for never
		webhook bool
	}
	rapid.Check(t, func(t *rapid.T) {
		g, now := opened(), noon
		if rapid.Bool().Draw(t, "has a window") {
			g.Spec.Window = duration(2 * time.Hour)
		}
		var closes []closing
		inForce := func(c closing) bool { return c.until.IsZero() || now.Before(c.until) }
		for range rapid.IntRange(1, 15).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(61, 3000).Draw(t, "seconds later")) * time.Second)
			action := rapid.SampledFrom([]v1alpha1.RequestAction{v1alpha1.RequestOpen, v1alpha1.RequestClose}).Draw(t, "action")
			webhook := rapid.Bool().Draw(t, "by a webhook")
			behind := time.Duration(rapid.IntRange(0, 30).Draw(t, "seconds behind")) * time.Second // steps are farther apart
			window := rapid.SampledFrom([]time.Duration{0, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "window")
			at := now.Add(-behind)
			who := map[bool]string{true: "GateReceiver ops/ci", false: "alice"}[webhook]
			value := stamp(at)
			until := time.Time{}
			if window > 0 {
				value, until = value+"/"+window.String(), at.Add(window)
			}
			if limit := g.Spec.Window; limit != nil && (until.IsZero() || action == v1alpha1.RequestOpen && at.Add(limit.Duration).Before(until)) {
				until = at.Add(limit.Duration)
			}
			annotate(g, action, value)
			by(g, action, who, "")
			handled := handle(g, now)
			blocked := slices.ContainsFunc(closes, func(c closing) bool { return webhook && !c.webhook && inForce(c) })
			switch {
			case action == v1alpha1.RequestClose:
				closes = append(closes, closing{until, webhook})
			case blocked:
				if len(handled) != 1 || handled[0].Err == nil {
					t.Fatalf("a webhook opens what a person has closed: %+v", handled)
				}
			case !webhook:
				closes = nil
			default:
				closes = slices.DeleteFunc(closes, func(c closing) bool { return c.webhook })
			}
			want := v1alpha1.StateOpened
			if slices.ContainsFunc(closes, inForce) {
				want = v1alpha1.StateClosed
			}
			if d := gate.Decide(g, now); d.State != want {
				t.Fatalf("it is %s: %s, want %s\ncloses %+v\nstatus %+v", d.State, d.Message, want, closes, g.Status.Requests)
			}
			if n := len(g.Status.Requests); n > 32 {
				t.Fatalf("%d requests are remembered", n)
			}
		}
	})
}

func TestRefusedWebhookGetsCloseRequest(t *testing.T) {
	g := opened()
	asked(t, g, shut("2026-11-23T12:00:00Z/30m"), "alice")
	err := ledger.WriteRequest(g, hook(v1alpha1.RequestOpen), noon.Add(time.Minute))
	if !errors.Is(err, ledger.ErrClosedByPeople) || !strings.Contains(err.Error(), "close requested at 2026-11-23T12:00:00Z for 30m0s by alice") {
		t.Errorf("got %v", err)
	}
	if err := ledger.WriteRequest(g, hook(v1alpha1.RequestOpen), noon.Add(30*time.Minute)); err != nil {
		t.Errorf("the close is over, and still: %s", err)
	}
}

func TestWebhookDoesNotReplaceUnhandledManualRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, by string
		window    time.Duration
		written   bool
		err       error
	}{
		"a close by hand that lasts as long waits to be seen": {asked: "2026-11-23T12:00:00Z", by: "alice", err: ledger.ErrUnhandled},
		"a close by hand that lasts longer waits to be seen":  {asked: "2026-11-23T12:00:00Z/2h", by: "alice", window: time.Hour, err: ledger.ErrUnhandled},
		"a close by hand that is a little ahead waits":        {asked: "2026-11-23T12:00:50Z", by: "alice", err: ledger.ErrUnhandled},
		"a close by hand that ends before waits to be seen":   {asked: "2026-11-23T12:00:00Z/10m", by: "alice", window: time.Hour, err: ledger.ErrUnhandled},
		"a close by hand that is planned waits to be seen":    {asked: "2026-11-24T12:00:00Z", by: "alice", window: time.Hour, err: ledger.ErrUnhandled},
		"a close of another webhook that ends before":         {asked: "2026-11-23T12:00:00.5Z/10m", by: "GateReceiver ops/a", window: time.Hour, written: true},
		"a close of another webhook that lasts longer":        {asked: "2026-11-23T12:00:00.5Z", by: "GateReceiver ops/a", window: time.Hour},
		"nonsense":                     {asked: "soon", by: "alice", window: time.Hour, written: true},
		"a close by hand that is over": {asked: "2026-11-23T11:00:00Z/10m", by: "alice", window: time.Hour, err: ledger.ErrUnhandled},
	} {
		t.Run(name, func(t *testing.T) {
			g := opened()
			annotate(g, v1alpha1.RequestClose, tc.asked)
			by(g, v1alpha1.RequestClose, tc.by, "")
			r := hook(v1alpha1.RequestClose)
			if tc.window > 0 {
				r.Window = duration(tc.window)
			}
			if err := ledger.WriteRequest(g, r, utc("2026-11-23T12:00:01Z")); !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			if written := ledger.Requested(g, v1alpha1.RequestClose) != tc.asked; written != tc.written {
				t.Errorf("it is %q", ledger.Requested(g, v1alpha1.RequestClose))
			}
		})
	}
}

func TestShortCloseAfterUnhandledOpenWaits(t *testing.T) {
	g := opened()
	wrote(t, g, v1alpha1.RequestClose, noon)
	wrote(t, g, v1alpha1.RequestOpen, noon.Add(time.Second))
	r := hook(v1alpha1.RequestClose)
	r.Window = duration(time.Hour)
	if err := ledger.WriteRequest(g, r, noon.Add(2*time.Second)); !errors.Is(err, ledger.ErrUnhandled) {
		t.Errorf("the close is taken for covered by the one before the open: %v", err)
	}
}

func TestAPlannedOpenDoesNotEndTheCloseOfAReceiverWhoseClockIsAhead(t *testing.T) {
	g := opened()
	asked(t, g, open("2026-11-23T12:00:55Z").seen("2026-11-23T12:00:00Z"), "bob")
	asked(t, g, shut("2026-11-23T12:00:50Z").seen("2026-11-23T12:00:10Z"), "GateReceiver ops/alerts")
	if handled := handle(g, utc("2026-11-23T12:00:55Z")); len(handled) != 1 || handled[0].Err == nil {
		t.Errorf("handled %+v", handled)
	}
	if d := gate.Decide(g, utc("2026-11-23T12:00:55Z")); d.State != isClosed {
		t.Errorf("it is %s: %s", d.State, d.Message)
	}
}

func TestACloseOfAWebhookIsNotPutBehindAPlannedOpen(t *testing.T) {
	g := opened()
	asked(t, g, open("2026-11-23T12:00:59Z").seen("2026-11-23T12:00:00Z"), "alice")
	if got := wrote(t, g, v1alpha1.RequestClose, noon.Add(time.Second)); got != "2026-11-23T12:00:01Z" {
		t.Errorf("requested at %s", got)
	}
	handle(g, noon.Add(time.Second))
	for _, later := range []time.Duration{time.Second, 59 * time.Second, time.Hour} {
		handle(g, noon.Add(later))
		if d := gate.Decide(g, noon.Add(later)); d.State != isClosed {
			t.Errorf("after %s it is %s: %s", later, d.State, d.Message)
		}
	}
}
