package gate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// TestOfClosesThatEndTogetherTheLatestIsReported has a close with a duration end when one that spec.window limits ends.
func TestOfClosesThatEndTogetherTheLatestIsReported(t *testing.T) {
	g := opened()
	g.Spec.Window = duration(20 * time.Second)
	for _, refused := range []string{asked(t, g, shut("2026-11-23T12:00:00Z/42s"), "alice"), asked(t, g, shut("2026-11-23T12:00:22Z"), "alice")} {
		if refused != "" {
			t.Fatal(refused)
		}
	}
	for _, at := range []string{"2026-11-23T12:00:30Z", "2026-11-23T12:01:00Z"} {
		if d := gate.Decide(g, utc(at)); d.RequestedAt == nil || stamp(d.RequestedAt.Time) != "2026-11-23T12:00:22Z" || stamp(d.ResetToDefaultAt.Time) != "2026-11-23T12:00:42Z" {
			t.Errorf("at %s: %v until %v", at, d.RequestedAt, d.ResetToDefaultAt)
		}
	}
}

// TestACloseThatIsOverWhenAPlannedOpenBeginsKeepsItsEnd has spec.window end a close at the instant at which a planned open begins, and removes the window afterwards.
func TestACloseThatIsOverWhenAPlannedOpenBeginsKeepsItsEnd(t *testing.T) {
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

// TestOfClosesWithoutEndTheOneWithTheLatestTimeIsReported has Flux restore an older request after a newer one.
func TestOfClosesWithoutEndTheOneWithTheLatestTimeIsReported(t *testing.T) {
	g := opened()
	for _, r := range []request{shut("2026-11-23T12:00:00Z"), shut("2026-11-23T12:00:01Z"), shut("2026-11-23T12:00:00Z").seen("2026-11-23T12:00:02Z")} {
		if refused := asked(t, g, r, "alice"); refused != "" {
			t.Fatal(refused)
		}
	}
	if d := gate.Decide(g, utc("2026-11-23T12:00:03Z")); d.RequestedAt == nil || stamp(d.RequestedAt.Time) != "2026-11-23T12:00:01Z" {
		t.Errorf("%v; %+v", d.RequestedAt, g.Status.Requests)
	}
}
