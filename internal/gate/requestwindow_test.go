package gate_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

func TestRequestWindowIsAcceptedOrRefused(t *testing.T) {
	const refusal = "must have a DURATION from 1s to 366d, or 0s to withdraw requests"
	const malformed = "must be TIME[/DURATION][,only=KIND/NAME]..., such as 2026-12-19T12:00:00Z/30m"
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

func TestEventAndMessageHaveWindow(t *testing.T) {
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
func TestEventMessageFitsWithWindow(t *testing.T) {
	g := closed()
	annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:00.123456789Z/8783h59m59.999999999s")
	by(g, v1alpha1.RequestClose, strings.Repeat("x", 500), strings.Repeat("y", 1024))
	r := handle(g, noon)[0]
	if text := r.String(); r.Err != nil || len(text) > 1000 || !strings.Contains(text, "for 8783h59m59.999999999s by xxx") {
		t.Errorf("%d bytes: %s, %v", len(text), text, r.Err)
	}
}
