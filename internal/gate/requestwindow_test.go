package gate_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// opensFor checks from when until when a Gate that is closed by default is open.
func opensFor(t *testing.T, g *v1alpha1.Gate, want ...string) {
	t.Helper()
	var got []string
	intervals, errs := gate.Intervals(g, noon.Add(-time.Hour), noon.Add(48*time.Hour))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for i := range intervals {
		if i.State.String() == string(v1alpha1.StateOpened) {
			got = append(got, i.From.Format("02T15:04:05")+" "+i.Until.Format("02T15:04:05"))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("opened %q, want %q", got, want)
	}
}

// wants checks the state at an instant, and when the request that is in force or was
// last ends, empty for never.
func wants(t *testing.T, g *v1alpha1.Gate, at string, state v1alpha1.State, reset string) gate.Decision {
	t.Helper()
	d := gate.Decide(g, utc(at))
	got := ""
	if d.ResetToDefaultAt != nil {
		got = stamp(d.ResetToDefaultAt.Time)
	}
	if d.State != state || got != reset {
		t.Errorf("at %s it is %s (%s) until %q, want %s until %q", at, d.State, d.Message, got, state, reset)
	}
	return d
}

func TestAWindowOfARequestIsAcceptedOrRefused(t *testing.T) {
	const refusal = "must have a DURATION from 1s to 366d, or 0s to withdraw requests"
	const malformed = "must be TIME[/DURATION], such as 2026-12-19T12:00:00Z/30m"
	for value, tc := range map[string]struct {
		window  time.Duration
		refusal string
	}{
		"2026-11-23T12:00:00Z/30m":              {window: 30 * time.Minute},
		"2026-11-23T13:00:00+01:00/1h30m":       {window: 90 * time.Minute},
		"2026-11-23T11:59:59.25Z/1.5h":          {window: 90 * time.Minute},
		"2026-11-23T12:00:00Z/1s":               {window: time.Second},
		"2026-11-23T12:00:00Z/1500ms":           {window: 1500 * time.Millisecond},
		"2026-11-23T12:00:00Z/8784h":            {window: 366 * 24 * time.Hour},
		"2026-11-23T12:00:00Z/8784h1ns":         {refusal: malformed},
		"2026-11-23T12:00:00Z/999999h":          {refusal: refusal},
		"2026-11-23T12:00:00Z/9999999999999h":   {refusal: malformed},
		"2026-11-23T12:00:00Z/999ms":            {refusal: refusal},
		"2026-11-23T12:00:00Z/-5m":              {refusal: malformed},
		"2026-11-23T12:00:00Z/+5m":              {refusal: malformed},
		"2026-11-23T12:00:00Z/3d":               {window: 72 * time.Hour},
		"2026-11-23T12:00:00Z/52w":              {window: 364 * 24 * time.Hour},
		"2026-11-23T12:00:00Z/367d":             {refusal: refusal},
		"2026-11-23T12:00:00Z/30":               {refusal: malformed},
		"2026-11-23T12:00:00Z/30 m":             {refusal: malformed},
		"2026-11-23T12:00:00Z/ 30m":             {refusal: malformed},
		"2026-11-23T12:00:00Z/30m ":             {refusal: malformed},
		"2026-11-23T12:00:00Z/30m\n":            {refusal: malformed},
		"2026-11-23T12:00:00Z /30m":             {refusal: malformed},
		" 2026-11-23T12:00:00Z/30m":             {refusal: malformed},
		"2026-11-23T12:00:00Z/":                 {refusal: malformed},
		"2026-11-23T12:00:00Z//":                {refusal: malformed},
		"2026-11-23T12:00:00Z//30m":             {refusal: malformed},
		"2026-11-23T12:00:00Z/30m/":             {refusal: malformed},
		"2026-11-23T12:00:00Z/30m/30m":          {refusal: malformed},
		"2026-11-23T12:00:00Z/PT30M":            {refusal: malformed},
		"2026-11-23T12:00:00Z/1d12h":            {refusal: malformed},
		"2026-11-23T12:00:00Z/2026-11-23T13:00": {refusal: malformed},
		"2026-11-23T12:00:00Z 30m":              {refusal: malformed},
		"/":                                     {refusal: malformed},
		"//":                                    {refusal: malformed},
		"/30m":                                  {refusal: malformed},
		"30m":                                   {refusal: malformed},
		"now/30m":                               {refusal: malformed},
		"2028-11-23T12:00:00Z/30m":              {refusal: "at most 366 days from now"},
	} {
		t.Run(value, func(t *testing.T) {
			g := closed()
			annotate(g, v1alpha1.RequestOpen, value)
			handled := handle(g, noon)
			if len(handled) != 1 {
				t.Fatalf("%d requests handled, want 1", len(handled))
			}
			r, memory := handled[0], g.Status.Memory.HandledRequests[0]
			if tc.refusal != "" {
				if r.Err == nil || !strings.Contains(r.Err.Error(), tc.refusal) || r.Malformed != strings.HasPrefix(tc.refusal, "must ") {
					t.Errorf("got error %v, want %q", r.Err, tc.refusal)
				}
				if r.Window != nil || memory.RequestedAt != nil || memory.Window != nil || g.LatestRequest() != nil {
					t.Errorf("a refused request leaves %+v, %+v", memory, g.LatestRequest())
				}
			} else {
				want := duration(tc.window)
				if r.Err != nil || !reflect.DeepEqual([]*v1alpha1.Duration{r.Window, memory.Window, g.LatestRequest().Window}, []*v1alpha1.Duration{want, want, want}) {
					t.Errorf("got %+v, memory %+v", r, memory)
				}
			}
			if memory.LastHandled != value || len(handle(g, noon.Add(time.Hour))) > 0 {
				t.Errorf("handled again, last handled is %q", memory.LastHandled)
			}
		})
	}
}

func TestParseReadsFormattedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := noon.Add(time.Duration(rapid.Int64Range(-int64(300*24*time.Hour), int64(300*24*time.Hour)).Draw(t, "at"))).Truncate(time.Microsecond)
		var window *v1alpha1.Duration
		if rapid.Bool().Draw(t, "has a window") {
			soonest := max(time.Second, noon.Sub(at)+time.Microsecond) // else it was over at noon
			window = duration(time.Duration(rapid.Int64Range(int64(soonest), int64(8784*time.Hour)).Draw(t, "window")))
		}
		zone := time.FixedZone("", rapid.IntRange(-14*3600, 14*3600).Draw(t, "zone"))
		g := closed()
		annotate(g, v1alpha1.RequestClose, ledger.FormatRequest(at.In(zone), window))
		r := handle(g, noon)[0]
		if r.Err != nil || !r.At.Equal(at) || !reflect.DeepEqual(r.Window, window) {
			t.Fatalf("%q is read as %s, %v: %v", r.Value, r.At, r.Window, r.Err)
		}
	})
}

func TestARequestLastsForTheShorterOfItsWindowAndThatOfTheGate(t *testing.T) {
	for name, tc := range map[string]struct {
		gate  *v1alpha1.Gate
		value string
		want  string
	}{
		"shorter":                 {closed(window(time.Hour)), "2026-11-23T12:00:00Z/30m", "23T12:00:00 23T12:30:00"},
		"as long":                 {closed(window(time.Hour)), "2026-11-23T12:00:00Z/60m", "23T12:00:00 23T13:00:00"},
		"longer":                  {closed(window(time.Hour)), "2026-11-23T12:00:00Z/8784h", "23T12:00:00 23T13:00:00"},
		"the gate has none":       {closed(), "2026-11-23T12:00:00Z/30m", "23T12:00:00 23T12:30:00"},
		"neither has one":         {closed(), "2026-11-23T12:00:00Z", "23T12:00:00 25T12:00:00"},
		"begun a while ago":       {closed(window(2 * time.Hour)), "2026-11-23T11:45:00Z/30m", "23T11:45:00 23T12:15:00"},
		"planned":                 {closed(window(2 * time.Hour)), "2026-11-24T08:00:00Z/30m", "24T08:00:00 24T08:30:00"},
		"planned, longer":         {closed(window(10 * time.Minute)), "2026-11-24T08:00:00Z/30m", "24T08:00:00 24T08:10:00"},
		"fractions of a second":   {closed(), "2026-11-23T12:00:00.5Z/10.2s", "23T12:00:01 23T12:00:10"},
		"fractions of its window": {closed(), "2026-11-23T12:00:00Z/1.9s", "23T12:00:00 23T12:00:01"},
	} {
		t.Run(name, func(t *testing.T) {
			annotate(tc.gate, v1alpha1.RequestOpen, tc.value)
			if r := handle(tc.gate, noon); r[0].Err != nil {
				t.Fatal(r[0].Err)
			}
			opensFor(t, tc.gate, tc.want)
		})
	}
}

func TestTheWindowOfTheGateCapsARequestThatIsInForce(t *testing.T) {
	g := accepted(t, closed(), open("2026-11-23T12:00:00Z/2h").seen("2026-11-23T12:00:00Z"))
	wants(t, g, "2026-11-23T13:30:00Z", v1alpha1.StateOpened, "2026-11-23T14:00:00Z")
	g.Spec.Window = duration(time.Hour)
	wants(t, g, "2026-11-23T13:30:00Z", v1alpha1.StateClosed, "2026-11-23T13:00:00Z")
	g.Spec.Window = duration(3 * time.Hour)
	wants(t, g, "2026-11-23T13:30:00Z", v1alpha1.StateOpened, "2026-11-23T14:00:00Z")
}

func TestACloseRequestHasAWindowToo(t *testing.T) {
	g := accepted(t, opened(window(2*time.Hour)), shut("2026-11-23T12:00:00Z/10m").seen("2026-11-23T12:00:00Z"))
	d := wants(t, g, "2026-11-23T12:09:59Z", v1alpha1.StateClosed, "2026-11-23T12:10:00Z")
	if d.Message != "Gate scheduled for opening at 2026-11-23T12:10:00Z, close requested at 2026-11-23T12:00:00Z for 10m0s" || d.Reason != v1alpha1.CloseRequestedReason {
		t.Errorf("%s: %s", d.Reason, d.Message)
	}
	if d.Next == nil || !d.Next.At.Equal(instant("2026-11-23T12:10:00Z")) || !d.Recheck.Equal(utc("2026-11-23T12:10:00Z")) {
		t.Errorf("next is %+v, recheck %s", d.Next, d.Recheck)
	}
	wants(t, g, "2026-11-23T12:10:00Z", v1alpha1.StateOpened, "2026-11-23T12:10:00Z")
}

func TestTheWindowOfAGateDoesNotShortenACloseWithADuration(t *testing.T) {
	for name, tc := range map[string]struct {
		gate  *v1alpha1.Gate
		value string
		// until is when the Gate opens, empty for never.
		until string
	}{
		"for longer than spec.window":     {opened(window(10 * time.Second)), "2026-11-23T12:00:00Z/1h", "2026-11-23T13:00:00Z"},
		"for less":                        {opened(window(time.Hour)), "2026-11-23T12:00:00Z/10m", "2026-11-23T12:10:00Z"},
		"planned":                         {opened(window(10 * time.Second)), "2026-11-23T14:00:00Z/1h", "2026-11-23T15:00:00Z"},
		"no duration, as in the RFC":      {opened(window(24 * time.Hour)), "2026-11-23T12:00:00Z", "2026-11-24T12:00:00Z"},
		"no duration and no window":       {opened(), "2026-11-23T12:00:00Z", ""},
		"unlimited":                       {opened(window(10 * time.Second)), "2026-11-23T12:00:00Z/unlimited", ""},
		"unlimited and no window":         {opened(), "2026-11-23T12:00:00Z/unlimited", ""},
		"unlimited and planned":           {opened(window(10 * time.Second)), "2026-11-23T14:00:00Z/unlimited", ""},
		"unlimited, closed by default":    {closed(windows(weekly("day", "00:00", "24:00")), window(10*time.Second)), "2026-11-23T12:00:00Z/unlimited", ""},
		"with the largest duration there": {opened(window(10 * time.Second)), "2026-11-23T12:00:00Z/8784h", "2027-11-24T12:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := accepted(t, tc.gate, shut(tc.value).seen("2026-11-23T12:00:00Z"))
			begins := utc(beforeSlash(tc.value))
			handle(g, begins)
			for _, at := range []time.Time{begins, begins.Add(9 * time.Second), begins.Add(11 * time.Second), begins.Add(300 * 24 * time.Hour), utc("2030-01-01T00:00:00Z")} {
				want := v1alpha1.StateClosed
				if tc.until != "" && !at.Before(utc(tc.until)) {
					want = v1alpha1.StateOpened
				}
				if d := gate.Decide(g, at); d.State != want {
					t.Errorf("at %s it is %s: %s", stamp(at), d.State, d.Message)
				}
			}
		})
	}
}

func TestAnUnlimitedCloseLastsUntilItIsWithdrawn(t *testing.T) {
	for name, end := range map[string]request{
		"by an open": open("2026-12-23T12:00:00Z"), "by one that only withdraws it": open("2026-12-23T12:00:00Z/0s"),
	} {
		t.Run(name, func(t *testing.T) {
			g := accepted(t, opened(window(time.Hour)), shut("2026-11-23T12:00:00Z/unlimited").seen("2026-11-23T12:00:00Z"))
			want := "Gate close requested at 2026-11-23T12:00:00Z without end"
			if d := wants(t, g, "2026-12-23T11:59:59Z", v1alpha1.StateClosed, ""); d.Message != want || !g.LatestRequest().Unlimited {
				t.Errorf("message %q, last request %+v", d.Message, g.LatestRequest())
			}
			accepted(t, g, end)
			if d := gate.Decide(g, utc("2026-12-23T12:00:01Z")); d.State != v1alpha1.StateOpened {
				t.Errorf("it stays closed: %s", d.Message)
			}
		})
	}
	t.Run("and a person who closes for ever at the time of a shorter close counts", func(t *testing.T) {
		g := accepted(t, opened(window(time.Hour)), shut("2026-11-23T12:00:00Z").seen("2026-11-23T12:00:00Z"), shut("2026-11-23T12:00:00Z/unlimited").seen("2026-11-23T12:00:01Z"))
		wants(t, g, "2026-11-23T13:00:00Z", v1alpha1.StateClosed, "")
	})
	t.Run("but nothing opens without end", func(t *testing.T) {
		g := opened()
		if refused := asked(t, g, open("2026-11-23T12:00:00Z/unlimited").seen("2026-11-23T12:00:00Z"), "bob"); !strings.Contains(refused, "must be TIME[/DURATION], such as ") {
			t.Errorf("got %q", refused)
		}
	})
}

func TestTheOppositeRequestEndsAWindowThatDoesNotComeBack(t *testing.T) {
	for name, tc := range map[string]struct {
		requests []request
		want     []string
	}{
		"a short close within an open": {[]request{open("2026-11-23T12:00:00Z/1h").seen("2026-11-23T12:00:00Z"), shut("2026-11-23T12:10:00Z/5m").seen("2026-11-23T12:10:00Z")},
			[]string{"23T12:00:00 23T12:10:00"}},
		"a short open within a close": {[]request{shut("2026-11-23T12:00:00Z/1h").seen("2026-11-23T12:00:00Z"), open("2026-11-23T12:10:00Z/5m").seen("2026-11-23T12:10:00Z")},
			[]string{"23T12:10:00 23T12:15:00"}},
		"on a tie, close, for its window": {[]request{open("2026-11-23T12:00:00Z/1h").seen("2026-11-23T12:00:00Z"), shut("2026-11-23T12:00:00Z/5m").seen("2026-11-23T12:00:00Z")}, nil},
		"a planned open ends at its window": {[]request{open("2026-11-24T12:00:00Z/5m").seen("2026-11-23T12:00:00Z"), shut("2026-11-24T13:00:00Z/5m").seen("2026-11-23T12:00:00Z")},
			[]string{"24T12:00:00 24T12:05:00"}},
		"a planned close cuts the window": {[]request{open("2026-11-23T12:00:00Z/1h").seen("2026-11-23T12:00:00Z"), shut("2026-11-23T12:30:00Z/1m").seen("2026-11-23T12:00:00Z")},
			[]string{"23T12:00:00 23T12:30:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := accepted(t, closed(), tc.requests...)
			opensFor(t, g, tc.want...)
		})
	}
}

func TestARequestThatEndsTheOppositeOneResetsTheGateAtOnce(t *testing.T) {
	g := accepted(t, closed(window(time.Hour)), open("2026-11-23T12:00:00Z/30m").seen("2026-11-23T12:00:00Z"), shut("2026-11-23T12:10:00Z/20m").seen("2026-11-23T12:10:00Z"))
	wants(t, g, "2026-11-23T12:11:00Z", v1alpha1.StateClosed, "2026-11-23T12:10:00Z")
	// The open request was over by its own window.
	g = accepted(t, closed(window(time.Hour)), open("2026-11-23T12:00:00Z/5m").seen("2026-11-23T12:00:00Z"), shut("2026-11-23T12:10:00Z/20m").seen("2026-11-23T12:10:00Z"))
	wants(t, g, "2026-11-23T12:11:00Z", v1alpha1.StateClosed, "2026-11-23T12:30:00Z")
}

func TestReopeningWithAWindowNeverClosesAndTakesThePlaceOfTheOther(t *testing.T) {
	for name, tc := range map[string]struct {
		first, again string
		want         string
	}{
		"longer":                       {"2026-11-23T12:00:00Z/10m", "2026-11-23T12:05:00.7Z/30m", "23T12:00:00 23T12:35:00"},
		"shorter":                      {"2026-11-23T12:00:00Z/10m", "2026-11-23T12:05:00.7Z/1m", "23T12:00:00 23T12:06:00"},
		"without a window":             {"2026-11-23T12:00:00Z/10m", "2026-11-23T12:05:00.7Z", "23T12:00:00 23T13:05:00"},
		"a window after none":          {"2026-11-23T12:00:00Z", "2026-11-23T12:05:00.7Z/10m", "23T12:00:00 23T12:15:00"},
		"when the first is over":       {"2026-11-23T12:00:00Z/5m", "2026-11-23T12:05:00.7Z/10m", "23T12:00:00 23T12:05:00|23T12:05:01 23T12:15:00"},
		"at the same time, for longer": {"2026-11-23T12:00:00Z/5m", "2026-11-23T12:00:00Z/10m", "23T12:00:00 23T12:10:00"},
	} {
		t.Run(name, func(t *testing.T) {
			seen, _, _ := strings.Cut(tc.again, "/")
			g := accepted(t, closed(window(time.Hour)), open(tc.first).seen("2026-11-23T12:00:00Z"))
			before := gate.Decide(g, utc(seen))
			accepted(t, g, open(tc.again).seen(seen))
			parts := strings.Split(tc.want, "|")
			// The memory knows of the last request only.
			from, _, _ := strings.Cut(parts[len(parts)-1], " ")
			if len(parts) == 1 {
				if before.State != v1alpha1.StateOpened || gate.Decide(g, utc(seen)).State != v1alpha1.StateOpened {
					t.Errorf("it closes: before %s, then %s", before.Message, gate.Decide(g, utc(seen)).Message)
				}
				from = utc(seen).Truncate(time.Second).Format("02T15:04:05")
			}
			_, until, _ := strings.Cut(parts[len(parts)-1], " ")
			opensFor(t, g, from+" "+until)
		})
	}
}

func TestNothingOfAWindowStaysForTheNextRequest(t *testing.T) {
	g := accepted(t, closed(window(time.Hour)), open("2026-11-23T12:00:00Z/5m").seen("2026-11-23T12:00:00Z"),
		open("2026-11-23T14:00:00Z/7m").seen("2026-11-23T12:01:00Z"))
	first := func() v1alpha1.AcceptedRequest { return g.Status.Requests[0] }
	planned := func() v1alpha1.AcceptedRequest { return g.Status.Requests[1] }
	if first().Window.Duration != 5*time.Minute || planned().Window.Duration != 7*time.Minute || g.LatestRequest().Window.Duration != 7*time.Minute {
		t.Errorf("planned: %+v", g.Status.Requests)
	}
	wants(t, g, "2026-11-23T12:04:59Z", v1alpha1.StateOpened, "2026-11-23T12:05:00Z")
	handle(g, utc("2026-11-23T14:00:00Z"))
	if len(g.Status.Requests) != 1 || first().Window.Duration != 7*time.Minute || first().State != v1alpha1.RequestInForce {
		t.Errorf("its time has come: %+v", g.Status.Requests)
	}
	wants(t, g, "2026-11-23T14:06:59Z", v1alpha1.StateOpened, "2026-11-23T14:07:00Z")
	accepted(t, g, open("2026-11-23T16:00:00Z/9m").seen("2026-11-23T15:00:00Z"), open("2026-11-23T17:00:00Z").seen("2026-11-23T15:00:01Z"))
	if planned().Window != nil || g.LatestRequest().Window != nil {
		t.Errorf("planned without a window: %+v, %+v", planned(), g.LatestRequest())
	}
	accepted(t, g, open("2026-11-23T15:30:00Z"))
	if first().Window != nil {
		t.Errorf("without a window: %+v", first())
	}
	wants(t, g, "2026-11-23T16:29:59Z", v1alpha1.StateOpened, "2026-11-23T16:30:00Z")
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T15:40:00Z/0s")
	handle(g, utc("2026-11-23T15:40:00Z"))
	wants(t, g, "2026-11-23T16:29:59Z", v1alpha1.StateOpened, "2026-11-23T16:30:00Z")
	content, err := json.Marshal(g.Status)
	if err != nil || strings.Contains(string(content), "indow") {
		t.Errorf("the status still has a window: %s, %v", content, err)
	}
}

func TestEventAndMessageSayTheWindow(t *testing.T) {
	g := closed(window(time.Hour))
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z/90m")
	by(g, v1alpha1.RequestOpen, "GateReceiver apps/ci", "smoke tests passed")
	handled := handle(g, noon)
	want := "open requested at 2026-11-23T12:00:00Z for 1h30m0s by GateReceiver apps/ci: smoke tests passed"
	if got := handled[0].String(); got != want {
		t.Errorf("handled %q", got)
	}
	d := gate.Decide(g, noon)
	if d.Request == nil || d.Request.String() != want || d.Message != "Gate scheduled for closing at 2026-11-23T13:00:00Z, "+want {
		t.Errorf("request %v, message %s", d.Request, d.Message)
	}
	if last := g.LatestRequest(); last.Source != v1alpha1.SourceWebhook || last.RequestedBy != "GateReceiver apps/ci" || last.Window.Duration != 90*time.Minute {
		t.Errorf("last request %+v", last)
	}
	for who, source := range map[string]string{
		"GateReceiver apps/ci": v1alpha1.SourceWebhook, "GateReceiver": v1alpha1.SourceAnnotation, "gatereceiver apps/ci": v1alpha1.SourceAnnotation,
		"alice": v1alpha1.SourceAnnotation, "": v1alpha1.SourceAnnotation, "GateReceivers apps/ci": v1alpha1.SourceAnnotation,
	} {
		g := closed()
		annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00Z")
		by(g, v1alpha1.RequestClose, who, "")
		handle(g, noon)
		if got := g.LatestRequest().Source; got != source {
			t.Errorf("%q is a request by %s", who, got)
		}
	}
}

// The longest sentence there can be stays below what events.k8s.io takes.
func TestTheSentenceOfAnEventFitsWithAWindow(t *testing.T) {
	g := closed()
	annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00.123456789Z/8783h59m59.999999999s")
	by(g, v1alpha1.RequestClose, strings.Repeat("x", 500), strings.Repeat("y", 1024))
	r := handle(g, noon)[0]
	if text := r.String(); r.Err != nil || len(text) > 1000 || !strings.Contains(text, "for 8783h59m59.999999999s by xxx") {
		t.Errorf("%d bytes: %s, %v", len(text), text, r.Err)
	}
}
