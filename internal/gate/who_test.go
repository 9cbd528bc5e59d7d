package gate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// by sets the requester and the reason of a request.
func by(g *v1alpha1.Gate, action v1alpha1.RequestAction, who, reason string) {
	g.Annotations[string(action)+".gate.fluxcd.io/requestedBy"] = who
	g.Annotations[string(action)+".gate.fluxcd.io/reason"] = reason
	g.Annotations[string(action)+".gate.fluxcd.io/received"] = g.Annotations[string(action)+".gate.fluxcd.io/requestedAt"]
}

func TestRequesterIsStoredWithRequest(t *testing.T) {
	g := closed()
	annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z")
	by(g, v1alpha1.RequestOpen, "alice", "hotfix 1234")
	handled := handle(g, noon)
	if len(handled) != 1 || handled[0].String() != "open requested at 2026-11-23T12:00:00Z by alice: hotfix 1234" {
		t.Errorf("handled %v", handled)
	}
	by(g, v1alpha1.RequestOpen, "mallory", "because")
	handle(g, noon)
	if last := g.LatestRequest(); last.RequestedBy != "alice" || last.Message != "hotfix 1234" {
		t.Errorf("the last request is %+v", last)
	}
	if r := gate.Decide(g, noon).Request; r == nil || r.By != "alice" || r.Reason != "hotfix 1234" || !r.At.Equal(noon) {
		t.Errorf("the request that decided is %v", r)
	}
}

func TestAnnotationTextsAreOneShortLine(t *testing.T) {
	account := "system:serviceaccount:" + strings.Repeat("n", 63) + ":" + strings.Repeat("s", 253)
	for name, tc := range map[string]struct{ by, wantBy, reason, wantReason string }{
		"the longest service account":  {by: account, wantBy: account},
		"a name that is too long":      {by: account + "x", wantBy: account[:336] + "..."},
		"a reason that is too long":    {reason: strings.Repeat("r", 513), wantReason: strings.Repeat("r", 509) + "..."},
		"cut within a letter":          {reason: strings.Repeat("å", 300), wantReason: strings.Repeat("å", 254) + "..."},
		"a reason of several lines":    {reason: "hotfix\n  Normal  Approved  by bob\r\n", wantReason: "hotfix   Normal  Approved  by bob"},
		"terminal sequences":           {by: "al\x1b[2Jice", wantBy: "al [2Jice"},
		"right-to-left overrides":      {by: "alice\u202ebob", wantBy: "alice bob"},
		"letters of any language stay": {by: "Ærlig Åse", wantBy: "Ærlig Åse"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed()
			annotate(g, v1alpha1.RequestOpen, "2026-11-23T12:00:00Z")
			by(g, v1alpha1.RequestOpen, tc.by, tc.reason)
			handled := handle(g, noon)
			last := g.LatestRequest()
			if last.RequestedBy != tc.wantBy || last.Message != tc.wantReason {
				t.Errorf("got  %q, %q\nwant %q, %q", last.RequestedBy, last.Message, tc.wantBy, tc.wantReason)
			}
			if text := handled[0].String(); len("Gate "+text) > 1024 || !utf8.ValidString(text) {
				t.Errorf("no text for an event: %q", text)
			}
		})
	}
}
