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

// withLines sets the requests of a Gate that were replaced or removed before they were handled.
func withLines(g *v1alpha1.Gate, all ...string) {
	for i, line := range all {
		all[i] = strings.ReplaceAll(line, "|", "\t")
	}
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	g.Annotations[v1alpha1.UnhandledAnnotation] = strings.Join(all, "\n")
}

func hasLines(g *v1alpha1.Gate) bool { _, ok := g.Annotations[v1alpha1.UnhandledAnnotation]; return ok }

func TestLinesAreHandledInOrderBeforeAnnotations(t *testing.T) {
	const close2h = "1|close|annotation|2026-11-23T11:59:00Z/2h|alice|incident"
	for name, tc := range map[string]struct {
		lines       []string
		open, close string
		// until is when the Gate opens, empty for never. A Gate that is open at noon has isOpened.
		until   string
		refused string
	}{
		"a longer close that was replaced":                           {lines: []string{close2h}, close: "2026-11-23T11:59:30Z/1m", until: "2026-11-23T13:59:00Z"},
		"a close that was removed":                                   {lines: []string{close2h}, until: "2026-11-23T13:59:00Z"},
		"an open after a close, both replaced":                       {lines: []string{close2h, "2|open|annotation|2026-11-23T11:59:10Z|alice|"}, until: isOpenAtNoon},
		"a close after an open, both replaced":                       {lines: []string{"1|open|annotation|2026-11-23T11:59:10Z|alice|", "2|close|annotation|2026-11-23T11:59:00Z/2h|bob|"}, until: "2026-11-23T13:59:00Z"},
		"an open in an annotation that may be older than the close":  {lines: []string{close2h}, open: "2026-11-23T11:59:59Z", until: "2026-11-23T13:59:00Z", refused: "a user has closed the gate since"},
		"an open in an annotation that is later":                     {lines: []string{close2h}, open: "2026-11-23T12:00:00.5Z", until: isOpenAtNoon},
		"an open of a webhook after the close of a person":           {lines: []string{close2h, "2|open|webhook|2026-11-23T11:59:30Z|GateReceiver ops/ci|"}, until: "2026-11-23T13:59:00Z", refused: "a user has closed the gate, so a webhook cannot open it"},
		"a close that is over, and an open in an annotation":         {lines: []string{"1|close|annotation|2026-11-23T11:30:00Z/1m|alice|"}, open: "2026-11-23T11:29:00Z", until: "", refused: "a user has closed the gate since"},
		"a planned close does not refuse an open":                    {lines: []string{"1|close|annotation|2026-11-23T15:00:00Z/1h|alice|"}, open: "2026-11-23T12:00:00Z", until: isOpenAtNoon},
		"a line that cannot be read":                                 {lines: []string{"1|close|annotation|2026-11-23T11:59:00Z/2h|alice"}, open: "2026-11-23T11:59:59Z", until: "", refused: "a user has closed the gate since"},
		"a source that does not exist":                               {lines: []string{"1|open|magic|2026-11-23T11:59:00Z/2h|alice|"}, until: ""},
		"a webhook without a receiver":                               {lines: []string{"1|open|webhook|2026-11-23T11:59:00Z/2h|alice|"}, until: ""},
		"a value that is refused":                                    {lines: []string{"1|open|annotation|soon|alice|", "2|close|annotation|2026-11-23T11:59:00Z/2h|alice|"}, until: "2026-11-23T13:59:00Z", refused: "must be TIME[/DURATION]"},
		"a close without an end, as it was in force before the next": {lines: []string{"1|close|annotation|2026-11-23T11:59:00Z/unlimited|alice|"}, close: "2026-11-23T11:59:30Z/1m", until: ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(windows(weekly("all", "00:00", "24:00")), window(24*time.Hour))
			if tc.until == isOpenAtNoon || tc.open != "" {
				g = closed()
			}
			withLines(g, tc.lines...)
			for action, value := range map[v1alpha1.RequestAction]string{v1alpha1.RequestOpen: tc.open, v1alpha1.RequestClose: tc.close} {
				if value != "" {
					annotate(g, action, value)
				}
			}
			handled := handle(g, noon)
			var refused string
			for _, r := range handled {
				if r.Err != nil {
					refused += r.Err.Error()
				}
			}
			if !strings.Contains(refused, tc.refused) || (refused == "") != (tc.refused == "") {
				t.Errorf("refused %q, want %q", refused, tc.refused)
			}
			d := gate.Decide(g, noon.Add(2*time.Second))
			switch {
			case tc.until == isOpenAtNoon:
				if d.State != isOpened {
					t.Errorf("it is %s: %s", d.State, d.Message)
				}
			case d.State != isClosed:
				t.Errorf("it is %s: %s", d.State, d.Message)
			case tc.open == "" && nextOf(d).at != tc.until:
				t.Errorf("it opens at %q: %s", nextOf(d).at, d.Message)
			}
			if again := handle(g, noon.Add(time.Second)); len(again) > 0 && !strings.Contains(again[0].Reason, "cannot be read") {
				t.Errorf("handled again: %+v", again)
			}
		})
	}
}

const isOpenAtNoon = "open at noon"

func TestHandledLineIsNotHandledAgain(t *testing.T) {
	g := opened()
	annotate(g, v1alpha1.RequestClose, "2026-11-23T11:59:00Z/2h")
	by(g, v1alpha1.RequestClose, "alice", "incident")
	handle(g, noon) // and before this is written, carl replaces it
	withLines(g, "1|close|annotation|2026-11-23T11:59:00Z/2h|alice|incident")
	annotate(g, v1alpha1.RequestClose, "2026-11-23T12:00:01Z/10s")
	by(g, v1alpha1.RequestClose, "carl", "a try")
	handled := handle(g, utc("2026-11-23T12:00:02Z"))
	if len(handled) != 1 || handled[0].By != "carl" || g.Status.Memory.LastHandledLine != 1 || len(g.Status.Requests) != 2 {
		t.Errorf("handled %+v, status %+v", handled, g.Status)
	}
}

// The controller may die between its two writes, and lines may be added between them.
func TestLinesAreHandledOnceAndRemovedAfterwards(t *testing.T) {
	g := opened()
	withLines(g, "7|close|annotation|2026-11-23T11:59:00Z/2h|alice|", "8|close|webhook|2026-11-23T11:59:10Z/1h|GateReceiver ops/ci|")
	decided := g.DeepCopy()
	if handled := handle(g, noon); len(handled) != 2 || g.Status.Memory.LastHandledLine != 8 {
		t.Fatalf("handled %+v, last line %d", handled, g.Status.Memory.LastHandledLine)
	}
	if handled := handle(g, noon.Add(time.Minute)); len(handled) > 0 {
		t.Errorf("handled again after a crash: %+v", handled)
	}
	g.Annotations[v1alpha1.UnhandledAnnotation] += "\n9\tclose\tannotation\t2026-11-23T11:59:50Z\tbob\t"
	if !ledger.RemoveLines(g, decided) || g.Annotations[v1alpha1.UnhandledAnnotation] != "9\tclose\tannotation\t2026-11-23T11:59:50Z\tbob\t" {
		t.Errorf("left %q", g.Annotations[v1alpha1.UnhandledAnnotation])
	}
	if ledger.RemoveLines(g, decided) {
		t.Error("removed again")
	}
	decided = g.DeepCopy()
	if handled := handle(g, noon.Add(time.Minute)); len(handled) != 1 || handled[0].By != "bob" {
		t.Errorf("handled %+v", handled)
	}
	if !ledger.RemoveLines(g, decided) || hasLines(g) {
		t.Errorf("left %v", g.Annotations)
	}
}

func TestOpenInLineNeedsApprovals(t *testing.T) {
	line := func(source string) *v1alpha1.Gate {
		g := closed(func(s *v1alpha1.GateSpec) {
			s.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
		})
		withLines(g, fmt.Sprintf("1|open|%s|2026-11-23T11:59:00Z|alice|incident", source))
		return g
	}
	for name, tc := range map[string]struct {
		source string
		stamps ledger.Stamps
		opens  bool
		err    string
	}{
		"one that waits":               {"annotation", ledger.Stamped, false, ""},
		"an emergency":                 {"emergency", ledger.Stamped, true, ""},
		"an emergency without a stamp": {"emergency", ledger.Unstamped, false, "the requester is not verified"},
		"unknown stamps":               {"annotation", ledger.StampsUnknown, false, "request it again"},
	} {
		t.Run(name, func(t *testing.T) {
			g := line(tc.source)
			if !ledger.NeedsStamps(g) {
				t.Error("it does not need stamps")
			}
			// The annotation of another request marks no earlier one as an emergency.
			g.Annotations[v1alpha1.OpenEmergencyAnnotation] = "2026-11-23T11:59:00Z"
			handled := gate.ApplyRequests(g, tc.stamps, noon)
			if len(handled) != 1 || (handled[0].Err == nil) != (tc.err == "") || tc.err != "" && !strings.Contains(handled[0].Err.Error(), tc.err) {
				t.Fatalf("handled %+v", handled)
			}
			if d := gate.Decide(g, noon.Add(time.Second)); (d.State == isOpened) != tc.opens {
				t.Errorf("it is %s: %s", d.State, d.Message)
			}
		})
	}
}

func TestWebhookDoesNotOverrideManualClose(t *testing.T) {
	g := closed()
	withLines(g, "1|close|annotation|2026-11-23T11:59:00Z/2h|alice|incident")
	err := ledger.WriteRequest(g, ledger.Request{Action: v1alpha1.RequestOpen, By: "GateReceiver ops/ci"}, noon)
	if err == nil || !strings.Contains(err.Error(), "a user has closed the gate, so a webhook cannot open it: close requested at 2026-11-23T11:59:00Z for 2h0m0s by alice: incident") {
		t.Errorf("got %v", err)
	}
}
