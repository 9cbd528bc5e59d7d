package gate_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
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

func TestCloses(t *testing.T) {
	runScripts(t, map[string]string{
		// A close only extends the closes in force.
		"an indefinite close and a shorter one": `opened; 12:00 alice closes; 13:00 bob closes 12:00:01/1h1s; 13:00 is closed by alice until never last bob; 15:59 is closed`,
		"a shorter close of another user":       `opened; 12:00 alice closes /2h; 12:30 bob closes /10m; 12:30 is closed by alice until 14:00 last bob; 12:41 is closed`,
		"a shorter close of the same user":      `opened; 12:00 alice closes /2h; 12:30 alice closes /10m; 12:30 is closed by alice until 14:00`,
		"a longer close":                        `opened; 12:00 alice closes /1h; 12:30 bob closes /1h; 12:30 is closed by bob until 13:30; 13:00 is closed`,
		"an indefinite close after another":     `opened; 12:00 alice closes /1h; 12:30 bob closes; 12:30 is closed by bob until never; 15:59 is closed`,
		"a short close of an alert":             `opened; 12:00 alice closes; 12:30:00.5 ops/alerts closes /1m; 12:30:00.5 is closed by alice until never; 15:59 is closed`,
		"a short close after that of an alert":  `opened; 12:00:00.5 ops/alerts closes; 12:30 alice closes /1m; 12:30 is closed by ops/alerts until never; 15:59 is closed`,
		"a close that lasts longer by now": `opened 1h; 12:00 alice closes; 12:30 bob closes /40m; window 24h
			12:31 reconciles closed; 13:15 is closed by alice`,
		"unlimited at the time of a shorter one": `opened 1h; 12:00 alice closes; 12:00:01 alice closes 12:00/unlimited; 13:00 is closed reset never`,

		// The request that the Gate got last decides, not the one with the latest time.
		"just after an open of a webhook": `closed; 12:00:00.5 ops/ci opens; 12:00:00.9 alice closes 12:00; 12:00:00.9 is closed by alice; 12:00:30 reconciles closed by alice`,
		"by a clock 20 seconds behind":    `closed; 12:00 bob opens; 12:00:10 alice closes 11:59:50; 12:00:10 is closed by alice; 13:00:10 reconciles closed by alice`,
		"by a clock hours behind":         `closed; 12:00 bob opens; 12:00:10 alice closes 09:00; 12:00:10 is closed by alice; 13:00:10 reconciles closed by alice`,
		"by a clock behind, after another close": `closed; 12:00 bob closes /15s; 12:00:10 alice closes 11:59:50
			12:00:10 is closed by alice; 12:00:11 is closed; 12:00:40 reconciles closed by alice; 13:00:10 reconciles closed`,
		"an open after it": `closed; 12:00 bob closes; 12:00:02 alice opens 12:00:01; 12:00:02 is opened by alice; 13:00:02 reconciles opened by alice`,
		"by a receiver whose clock is ahead": `closed; 12:00 bob opens; 12:00:10 ops/alerts closes 12:00:50
			12:00:10 is closed by ops/alerts; 12:00:40 reconciles closed by ops/alerts; 13:00:10 reconciles closed by ops/alerts`,
		"ahead, before a planned open": `opened; 12:00 bob opens 12:00:55; 12:00:10 ops/alerts closes 12:00:50; 12:00:55 reconciles closed ! is refused`,
		"ahead, with an invalid spec":  `opened; invalid; 12:00:10 ops/alerts closes 12:00:50; 12:00:10 is closed`,
		"with an invalid spec":         `closed; 12:00 - opens; invalid; 12:01 alice closes; 12:01 is closed by alice`,

		// A close is not lost behind a longer one, by the order of plans, or because the controller was down.
		"shorter, after the plan to open": `closed; 12:00 alice closes; 12:30 bob opens 14:00; 13:00 carol closes /2h; 14:00:30 reconciles closed; 14:59:59 reconciles closed`,
		"shorter, before an older open":   `closed; 12:00 alice closes; 13:00 carol closes /2h; 13:10 git opens 12:30 ! not later; 13:10:30 reconciles closed`,
		"behind, before an older open":    `closed; 12:00 alice closes; 12:00:10 dave closes 11:59:30; 12:00:20 git opens 11:59:45 ! is refused; 12:00:30 reconciles closed`,
		"planned after the plan to open": `closed; 09:00 bob closes 15:00/6h; 10:00 rel opens 16:00; 11:00 alice closes 14:00/6h
			14:00 reconciles closed; 15:00 reconciles closed; 16:00:30 reconciles closed`,
		"for the time of a plan that moves": `opened; 12:00 alice closes 2026-11-23T18:00:00+01:00; 12:10 bob closes 17:00; 12:20 alice closes 20:00; 17:30 reconciles closed`,
		"of another user for the same time": `opened; 12:00 alice closes 17:00; 12:10 bob closes 17:00; 12:20 alice closes 20:00; 17:30 reconciles closed`,
		"for the time of one that has ended": `opened; 12:00 alice closes 2026-11-23T13:00:00+01:00; 12:00:20 bob opens; 12:00:25 carol closes 12:00
			12:00:30 reconciles closed`,
		"over when it is handled": `closed; 11:50 bob opens; 12:30 alice closes 12:00/10m; 12:30 reconciles closed`,
		"after an open that was refused, and another": `closed; 12:10 alice closes /50m; 12:20 git opens 12:00 ! not later; 13:05 reconciles closed; 13:05 bob opens tomorrow ! must be
			- writes open 12:00; 13:06 reconciles closed; 13:10 reconciles closed`,

		// The controller handles several requests at once.
		"at once with an open, beside a longer close": `closed; 11:00 alice closes; alice writes open 13:00; alice writes close 13:00/2h; 13:05 reconciles closed`,
		"at once with an open, although it is over":   `closed; - writes open 11:50/1h; - writes close 12:00/10m; 12:30 reconciles closed`,
		"at once, over by two clocks":                 `closed; - writes open 12:00:50/1h; - writes close 12:00/10m; 12:30 reconciles closed`,
		"at once with a later open":                   `closed; - writes open 12:15/1h; - writes close 12:00/10m; 12:30 reconciles opened`,
		"at once, after an open in force":             `closed; 11:50 bob opens; - writes close 12:00/10m; - writes open 12:00:30; 12:30 reconciles closed`,
		"at once, although it may last":               `closed; - writes close 12:00/10m; - writes open 12:00; 12:10:30 reconciles closed`,
		"a planned open began meanwhile":              `closed; 11:00 rel opens 12:05; - writes close 12:00/10m; 12:30 reconciles closed`,
		"a planned open began after it":               `closed; 11:00 rel opens 12:15; - writes close 12:00/10m; 12:30 reconciles opened`,
		"over, by a replica that is ahead":            `closed; 11:50 bob opens /40m; - writes close 12:00/10m; 12:30:10 reconciles closed; 12:29:30 reconciles closed`,
		"an open later by more than a minute":         `closed; 11:00:00.1 - opens; - writes close 11:00:00.7; - writes open 11:01:00.8; 12:00 reconciles opened`,
		"webhooks close, then open":                   `closed; 11:00 - opens; 12:00:00.5 ops/ci calls close; 12:00:00.500001 ops/ci calls open; 12:02 reconciles opened`,
		"webhooks close, and open a minute later":     `closed; 11:00 - opens; 12:00 ops/ci calls close; 12:01 ops/ci calls open; 12:02 reconciles opened`,

		// What has ended stays ended with a longer spec.window.
		"an open, and a longer window": `closed 1h; 12:00 bob opens; window 24h; 13:00 reconciles closed; 15:01 reconciles closed`,
		"an open, and no window":       `closed 1h; 12:00 bob opens; window none; 13:00 reconciles closed; 15:01 reconciles closed`,
		"a close, and a longer window": `opened 1h; 12:00 bob closes; 13:00 reconciles opened; window 24h; 13:01 reconciles opened`,
		"a close, and no window":       `opened 1h; 12:00 bob closes; 13:00 reconciles opened; window none; 13:01 reconciles opened`,
		"a planned open":               `closed 1h; 12:00 bob opens 13:00; window 24h; 15:00 reconciles closed`,
		"a close at the time of a plan": `closed 20s; 11:50 alice opens 12:00:20; 12:00 bob closes; 12:00:20 reconciles opened; window none
			12:00:30 is opened`,

		// The status reports the latest close.
		"two that end together": `opened 20s; 12:00 alice closes /42s; 12:00:22 alice closes; 12:00:30 is closed requested 12:00:22 reset 12:00:42; 12:01 is opened requested 12:00:22 reset 12:00:42`,
		"two without end":       `opened; 12:00 alice closes; 12:00:01 alice closes; 12:00:02 alice closes 12:00; 12:00:03 is closed requested 12:00:01`,
		"open, close, and another": `closed 1h; 11:00 ann opens 24T12:00; 24T12:10 bob opens 25T12:00; 24T12:20:01 cleo closes 24T12:20:00.5; 24T12:30:00.6 dan opens 24T12:30:00.5
			24T12:30:00.7 is closed by cleo; 24T12:31 is opened by dan; 24T14:00 is closed by -`,
	})
}

func TestRefusedRequests(t *testing.T) {
	runScripts(t, map[string]string{
		"an open of a webhook after a close of a user": `opened; 12:00 alice closes; 12:30:00.5 ops/ci opens ! is refused, a user has closed the gate, so a webhook cannot open it: close requested at 2026-11-23T12:00:00Z by alice
			12:30:00.5 is closed by alice`,
		"an open that is not later": `opened; 12:00 alice closes; 12:30 bob opens 12:00 ! is refused, its time is not later than that of a close request in force, request it again: close requested at 2026-11-23T12:00:00Z by alice
			12:30 is closed by alice`,
		"a close that is over by either clock": `opened; 12:00 alice closes; 12:16 bob closes 12:10/5m ! is refused, it ended at 2026-11-23T12:15:00Z, request it again; 12:16 is closed by alice`,
		"an open that is over":                 `opened; 12:00 alice closes; 12:15 bob opens 12:10/5m ! is refused, it ended at 2026-11-23T12:15:00Z, request it again; 12:15 is closed by alice`,
		"after an open":                        `closed; 12:00 - opens; 12:01 - opens yesterday ! must be; 12:01 - opens 2027-12-28T12:00:00Z ! at most; 12:01 - opens 11:59:59 ! must not be earlier; 12:01 is opened requested 12:00`,
		"an open of an older replica's clock":  `closed; 12:00 bob opens 12:00:50/1m; - writes open 11:00/5h; 12:00:10 reconciles opened; 13:00 reconciles closed`,
		"a time too long for the status":       `closed; 12:00 git opens 2026-11-23T12:00:00.00000000000000000000000000000000000000000000000000000000000000000000Z ! must`,
		"unlimited, of an open":                `opened; 12:00 bob opens /unlimited ! must be TIME[/DURATION][,only=KIND/NAME]..., such as `,
		"webhooks end only closes of webhooks": `opened; 12:00:00.5 ops/alerts closes; 12:01 alice closes /10m; 12:02:00.5 ops/alerts opens ! by alice; 12:30 is closed
			12:31:00.5 ops/alerts opens; 12:31:01 is opened; 12:40:00.5 ops/alerts closes; 12:41 alice closes; 12:42 bob opens; 12:42 is opened by bob`,
		"the name of a receiver is not that of a user": `opened; 12:00:00.5 ops/alerts closes /1m; - writes close 12:05; 12:05 reconciles closed last -; 12:06:00.5 ops/alerts opens ! so a webhook cannot open it`,
		"nor is its reason":                            `opened; 12:00 ops/alerts calls close; 12:00 reconciles closed last ops/alerts; - writes close 24T12:00; 24T12:00:01 reconciles closed last -`,
	})
}

func TestPlans(t *testing.T) {
	runScripts(t, map[string]string{
		"an open is brought forward":       `closed; 12:00 - opens 2026-12-24T00:00:00Z; 12:01 - opens 13:00; 12:01 is closed until 13:00; 13:00 is opened`,
		"an older open is restored":        `closed; 12:00 git opens 15:00; 12:10 alice opens 18:00; 12:20 git opens 15:00 ! handled before; 15:00:30 reconciles closed; 17:59:59 reconciles closed`,
		"a close opens nothing":            `opened; 12:00 - closes; 12:30 - closes 24T12:00; 13:00 reconciles closed; 24T11:59:59 reconciles closed; 24T12:00 reconciles closed; 25T00:00 reconciles closed`,
		"an open closes nothing":           `closed; 12:00 - opens; 12:30 - opens 24T12:00; 13:00 reconciles opened; 24T11:59:59 reconciles opened; 24T12:00 reconciles opened; 25T00:00 reconciles opened`,
		"an old value leaves a plan alone": `closed 1h; 20T12:00 - opens; 12:00 - opens 24T12:00; - writes open 20T12:00; 12:01 reconciles closed; 24T12:00 is opened`,
		"of two closes and an open":        `opened; 12:00 alice closes; 12:10 bob closes 14:00; 12:20 rel opens 15:00; 12:20 is closed until 15:00; 15:00 reconciles opened`,
		"an open does not end a later close": `opened; 12:00 rel opens 18:00; 17:00 alice closes; 17:00 is closed until never
			18:00 reconciles closed by alice ! 2026-11-23T18:00:00Z is refused, a user has closed the gate since this was planned: close requested
			19:00 rel opens 20:00; 19:00 is closed until 20:00; 20:00 reconciles opened`,
		"a close is moved only by its requester": `opened; 12:00 alice closes 18:00; 12:01 bob closes 20:00/1s; 12:01 is opened until 18:00; 12:02 alice closes 19:00; 12:02 is opened until 19:00
			12:03 u1 closes 24T00:00; 12:03 u2 closes 24T01:00; 12:03 u3 closes 24T02:00; 12:03 u4 closes 24T03:00; 12:03 u5 closes 24T04:00; 12:03 u6 closes 24T05:00
			12:04 u7 closes 24T12:00 ! must wait: 8 users have planned close requests, which is the maximum; 12:05 alice closes 24T13:00`,
	})
}

func TestRestoredAnnotations(t *testing.T) {
	runScripts(t, map[string]string{
		"a request outlives its annotation": `closed 1h; 12:00 - opens; stripped; 12:01 reconciles opened`,
		"an old close":                      `opened 1h; 20T12:00 - closes; 12:00 - closes; 12:01 - closes 20T12:00 ! 2026-11-23T12:00:00Z; 12:01 is closed`,
		"after a malformed value": `closed; 12:01 alice opens 12:00:30/10m; 12:02 alice opens tomorrow ! must; 12:03 bob closes 12:02:30
			alice writes open 12:00:30/10m; 12:04 reconciles closed last bob; 12:05 alice opens 12:00:30/20m ! not later`,
	})
}

func TestRequestsOfWebhooks(t *testing.T) {
	runScripts(t, map[string]string{
		"an open after a close of a user": `opened; 12:00 alice closes /30m; 12:01 ops/ci calls open ! closed close requested at 2026-11-23T12:00:00Z for 30m0s by alice; 12:30 ops/ci calls open`,
		"after a close far ahead":         `opened; 12:00 ops/ahead closes 14:00:00.5; 12:10 ops/ci calls open ! ahead`,
		"a manual close as long":          `opened; alice writes close 12:00; 12:00:01 ops/ci calls close ! unhandled`,
		"a longer manual close":           `opened; alice writes close 12:00/2h; 12:00:01 ops/ci calls close /1h ! unhandled`,
		"a manual close ahead":            `opened; alice writes close 12:00:50; 12:00:01 ops/ci calls close ! unhandled`,
		"a shorter manual close":          `opened; alice writes close 12:00/10m; 12:00:01 ops/ci calls close /1h ! unhandled`,
		"a planned manual close":          `opened; alice writes close 24T12:00; 12:00:01 ops/ci calls close /1h ! unhandled`,
		"a manual close that is over":     `opened; alice writes close 11:00/10m; 12:00:01 ops/ci calls close /1h ! unhandled`,
		"a shorter close of another":      `opened; ops/a writes close 12:00:00.5/10m; 12:00:01 ops/ci calls close /1h`,
		"a longer close of another":       `opened; ops/a writes close 12:00:00.5; 12:00:01 ops/ci calls close /1h = 12:00:00.5`,
		"a malformed value":               `opened; alice writes close soon; 12:00:01 ops/ci calls close /1h`,
		"a short close after an open":     `opened; 12:00 ops/ci calls close; 12:00:01 ops/ci calls open; 12:00:02 ops/ci calls close /1h ! unhandled`,
		"a close before a planned open": `opened; 12:00 alice opens 12:00:59; 12:00:01 ops/ci calls close = 12:00:01
			12:00:01 reconciles closed; 12:00:59 reconciles closed; 13:00 reconciles closed`,
		"a planned open stays": `closed; 12:00 - opens 13:00; 12:00:01 ops/ci calls open; 12:00:02 reconciles opened; 12:00:03 ops/ci calls close /59m
			12:00:04 reconciles closed; 12:00:05 reconciles closed; 13:00:01 reconciles opened`,
	})
}

func TestDurationsOfRequests(t *testing.T) {
	runScripts(t, map[string]string{
		// An open lasts for the shorter of its duration and spec.window.
		"shorter":                 `closed 1h; 12:00 - opens /30m; 12:00 is opened until 12:30`,
		"as long":                 `closed 1h; 12:00 - opens /60m; 12:00 is opened until 13:00`,
		"longer":                  `closed 1h; 12:00 - opens /8784h; 12:00 is opened until 13:00`,
		"no window":               `closed; 12:00 - opens /30m; 12:00 is opened until 12:30`,
		"neither":                 `closed; 12:00 - opens; 12:00 is opened until never; 25T12:00 is opened`,
		"begun before":            `closed 2h; 12:00 - opens 11:45/30m; 12:00 is opened until 12:15`,
		"planned":                 `closed 2h; 12:00 - opens 24T08:00/30m; 12:00 is closed until 24T08:00; 24T08:00 is opened until 24T08:30`,
		"planned, longer":         `closed 10m; 12:00 - opens 24T08:00/30m; 12:00 is closed until 24T08:00; 24T08:00 is opened until 24T08:10`,
		"fractions of a second":   `closed; 12:00 - opens 12:00:00.5/10.2s; 12:00 is closed until 12:00:01; 12:00:01 is opened until 12:00:10`,
		"fractions of a duration": `closed; 12:00 - opens /1.9s; 12:00 is opened until 12:00:01`,
		"another window later":    `closed; 12:00 - opens /2h; 13:30 is opened reset 14:00; window 1h; 13:30 is closed reset 13:00; window 3h; 13:30 is opened reset 14:00`,

		// spec.window does not shorten a close with a duration.
		"a close":                       `opened 2h; 12:00 - closes /10m; 12:09:59 is closed reset 12:10 until 12:10 = Gate scheduled for opening at 2026-11-23T12:10:00Z, close requested at 2026-11-23T12:00:00Z for 10m0s; 12:10 is opened reset 12:10`,
		"a close, longer than that":     `opened 10s; 12:00 - closes /1h; 12:00 is closed until 13:00`,
		"a planned close":               `opened 10s; 12:00 - closes 14:00/1h; 14:00 reconciles closed until 15:00`,
		"a close without a duration":    `opened 24h; 12:00 - closes; 12:00 is closed until 24T12:00`,
		"a close without end":           `opened; 12:00 - closes; 12:00 is closed until never; 2030-01-01T00:00:00Z is closed`,
		"a close of the longest":        `opened 10s; 12:00 - closes /8784h; 12:00 is closed until 2027-11-24T12:00:00Z`,
		"an unlimited close":            `opened 10s; 12:00 - closes /unlimited; 12:00 is closed until never; 2030-01-01T00:00:00Z is closed`,
		"an unlimited close, no window": `opened; 12:00 - closes /unlimited; 12:00 is closed until never; 2030-01-01T00:00:00Z is closed`,
		"an unlimited close, planned":   `opened 10s; 12:00 - closes 14:00/unlimited; 14:00 reconciles closed until never; 2030-01-01T00:00:00Z is closed`,
		"an unlimited close, opened": `opened 1h; 12:00 - closes /unlimited; 2026-12-23T11:59:59Z is closed reset never = Gate close requested at 2026-11-23T12:00:00Z without end
			2026-12-23T12:00:00Z - opens; 2026-12-23T12:00:01Z is opened`,
		"an unlimited close, withdrawn": `opened 1h; 12:00 - closes /unlimited; 2026-12-23T12:00:00Z - opens /0s; 2026-12-23T12:00:01Z is opened`,

		// The opposite request ends what then does not come back.
		"a short close within an open": `closed; 12:00 - opens /1h; 12:10 - closes /5m; 12:10 is closed until never; 12:16 is closed`,
		"a short open within a close":  `closed; 12:00 - closes /1h; 12:10 - opens /5m; 12:10 is opened until 12:15`,
		"on a tie, close":              `closed; 12:00 - opens /1h; 12:00 - closes /5m; 12:00 is closed until never; 12:06 is closed`,
		"a planned open and close":     `closed; 12:00 - opens 24T12:00/5m; 12:00 - closes 24T13:00/5m; 12:00 is closed until 24T12:00; 24T12:00 is opened until 24T12:05; 24T13:06 is closed`,
		"a close planned within it":    `closed; 12:00 - opens /1h; 12:00 - closes 12:30/1m; 12:00 is opened until 12:30; 12:31 is closed until never`,
		"a close resets the Gate":      `closed 1h; 12:00 - opens /30m; 12:10 - closes /20m; 12:11 is closed reset 12:10`,
		"a close after the end":        `closed 1h; 12:00 - opens /5m; 12:10 - closes /20m; 12:11 is closed reset 12:30`,

		// Another open never closes, and replaces the first.
		"again, longer":                       `closed 1h; 12:00 - opens /10m; 12:05:00.7 is opened; 12:05:00.7 - opens /30m; 12:05:00.7 is opened until 12:35`,
		"again, shorter":                      `closed 1h; 12:00 - opens /10m; 12:05:00.7 - opens /1m; 12:05:00.7 is opened until 12:06`,
		"again, without a duration":           `closed 1h; 12:00 - opens /10m; 12:05:00.7 - opens; 12:05:00.7 is opened until 13:05`,
		"again, a duration after none":        `closed 1h; 12:00 - opens; 12:05:00.7 - opens /10m; 12:05:00.7 is opened until 12:15`,
		"again, after the end":                `closed 1h; 12:00 - opens /5m; 12:05:00.7 - opens /10m; 12:05:00.7 is closed until 12:05:01; 12:05:01 is opened until 12:15`,
		"again, at the same time, for longer": `closed 1h; 12:00 - opens /5m; 12:00 - opens /10m; 12:00 is opened until 12:10`,
		"again and again": `closed 1h; 12:00 - opens /5m; 12:01 - opens 14:00/7m; 12:04:59 is opened reset 12:05; 14:00 reconciles opened; 14:06:59 is opened reset 14:07
			15:00 - opens 16:00/9m; 15:00:01 - opens 17:00; 15:30 - opens; 16:29:59 is opened reset 16:30; 15:40 - opens /0s ! there is no close; 16:29:59 is opened reset 16:30
			17:00 is opened until 18:00`,

		// Fractions of a second never open early nor close late.
		"an open with fractions": `closed 1m; 11:00 - opens 12:00:00.5; 12:00 is closed; 12:00:00.499 is closed; 12:00:01 is opened; 12:00:59.999 is opened
			12:01:00.5 is closed; 12:01:01 is closed`,
		"a close with fractions":     `opened 1m; 11:00 - closes 12:00:00.5; 11:59:59.999 is opened; 12:00:00.5 is closed; 12:00:30 is closed; 12:01:00.499 is closed; 12:01:01 is opened`,
		"open and close in a second": `closed; 12:00:00.2 - opens; 12:00:00.7 - closes; 12:00:00.7 is closed; 12:00:01 is closed; 24T12:00 is closed`,
		"close and open in a second": `opened; 12:00:00.2 - closes; 12:00:00.7 - opens; 12:00:00.2 is closed; 12:00:00.699 is closed; 12:00:01 is opened; 24T12:00 is opened`,
		"open, close, and open":      `closed; 12:00:00.2 - opens; 12:00:00.4 - closes; 12:00:00.6 - opens; 12:00:00.6 is closed`,
		"open again with fractions": `closed 1h; 11:30 - closes; 12:00 - opens; 12:10:00.5 - opens; 12:10:00.5 is opened; 12:10:00.501 is opened; 12:10:00.999 is opened; 12:10:01.5 is opened
			13:09:00.5 is opened; 13:10:00.5 is closed`,
		"open again on the second":     `closed 1h; 11:30 - closes; 12:00 - opens; 12:10 - opens; 12:10 is opened; 12:10:00.499 is opened; 12:10:01 is opened; 13:09 is opened until 13:10`,
		"open again soon":              `closed 1h; 11:30 - closes; 12:00 - opens; 12:00:00.7 - opens; 12:00:00.7 is opened; 12:00:00.701 is opened; 12:00:01.2 is opened; 12:59:00.7 is opened; 13:00:00.7 is closed`,
		"a planned open after a close": `closed; 12:00 - opens /1h; 12:00:01 - opens 12:10:00.6; 12:10:00.3 - closes; 12:10:00.6 is closed`,
	})
}

func TestWithdrawals(t *testing.T) {
	runScripts(t, map[string]string{
		"an open":                            `closed; 11:59:30 alice opens 11:00; 12:00 bob closes /0s; 12:00 is closed; 14:00 reconciles closed`,
		"a close":                            `opened; 11:59:30 alice closes 11:00; 12:00 bob opens /0s; 12:00 is opened; 14:00 reconciles opened`,
		"a close opens nothing by itself":    `closed; 11:59:30 alice closes 11:00; 12:00 bob opens /0s; 12:00 is closed; 14:00 reconciles closed`,
		"an open closes nothing by itself":   `opened; 11:59:30 alice opens 11:00; 12:00 bob closes /0s; 12:00 is opened; 14:00 reconciles opened`,
		"with a part of a second":            `opened; 11:59:30 alice opens 11:00:00.5; 12:00 bob closes 12:00:00.2/0s; 12:00 is opened; 14:00 reconciles opened`,
		"a close that is newer":              `opened; 11:59:30 alice closes 11:59; 12:00 bob opens 11:58/0s ! its time is not later; 12:00 is closed; 14:00 reconciles closed`,
		"nothing":                            `opened; 12:00 bob opens /0s ! there is no close request to withdraw; 12:00 is opened; 14:00 reconciles opened`,
		"an open leaves a close":             `opened; 11:59:30 alice closes 11:00; 12:00 bob closes /0s ! there is no open request to withdraw; 12:00 is closed; 14:00 reconciles closed`,
		"a close leaves an open":             `closed; 11:59:30 alice opens 11:00; 12:00 bob opens /0s ! there is no close request to withdraw; 12:00 is opened; 14:00 reconciles opened`,
		"a planned open":                     `closed; 11:59:30 alice opens 13:00; 12:00 bob closes /0s; 12:00 is closed; 14:00 reconciles closed`,
		"a planned close of their own":       `opened; 11:59:30 bob closes 13:00; 12:00 bob opens /0s; 12:00 is opened; 14:00 reconciles opened`,
		"a planned close of another":         `opened; 11:59:30 alice closes 13:00; 12:00 bob opens /0s ! there is no close request to withdraw; 12:00 is opened; 14:00 reconciles closed`,
		"a close, not the plan of another":   `opened; 11:59:30 alice closes 13:00; 11:59:30 carol closes 11:00; 12:00 bob opens /0s; 12:00 is opened; 14:00 reconciles closed`,
		"a close, not the plan of their own": `opened; 11:59:30 bob closes 13:00; 11:59:30 bob closes 11:00; 12:00 bob opens /0s; 12:00 is opened; 14:00 reconciles closed`,
		"an open, not the planned one":       `closed; 11:59:30 alice opens 13:00; 11:59:30 bob opens 11:00; 12:00 bob closes /0s; 12:00 is closed; 14:00 reconciles opened`,
		"a planned close, by an old value":   `opened; 11:59:30 bob closes 13:00; 12:00 bob opens 11:00/0s ! there is no close request to withdraw; 12:00 is opened; 14:00 reconciles closed`,
		"by a clock that is ahead":           `opened; 11:59:30 alice closes 11:00; 12:00 bob opens 12:00:30/0s; 12:00 is closed; 14:00 reconciles opened`,
		"in the future":                      `opened; 11:59:30 alice closes 11:00; 12:00 bob opens 12:02/0s ! must not be in the future; 12:00 is closed; 14:00 reconciles closed`,
	})
}

// TestCloseBeforePlannedOpenKeepsItsEnd has spec.window end a close at the instant at which a planned open begins, and
// removes the window afterwards.
func TestCloseBeforePlannedOpenKeepsItsEnd(t *testing.T) {
	g := closed()
	g.Spec.Window = duration(20 * time.Second)
	for _, refused := range []string{
		asked(t, g, request{v1alpha1.RequestOpen, "2026-11-23T12:00:20Z", "2026-11-23T11:50:00Z"}, "alice"), asked(t, g, shut("2026-11-23T12:00:00Z"), "bob"),
	} {
		if refused != "" {
			t.Fatal(refused)
		}
	}
	handle(g, utc("2026-11-23T12:00:20Z"))
	i := slices.IndexFunc(g.Status.Requests, func(r v1alpha1.AcceptedRequest) bool { return r.Action == v1alpha1.RequestClose })
	if i < 0 || g.Status.Requests[i].Until == nil || stamp(g.Status.Requests[i].Until.Time) != "2026-11-23T12:00:20Z" {
		t.Errorf("%+v", g.Status.Requests)
	}
	g.Spec.Window = nil
	if d := gate.Decide(g, utc("2026-11-23T12:00:30Z")); d.State != isOpened {
		t.Errorf("%+v", d)
	}
}
