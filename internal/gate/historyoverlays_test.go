package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestHistoryHasExceptionsAndRequestsForSomeTargets(t *testing.T) {
	g := production(closed())
	g.Generation = 1
	e := exception(byDefault(isOpened), only("a", "b", "c", "d"), valid("2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"))
	g, _ = resolved(g, utc("2026-11-23T11:00:00Z"), e)
	annotate(g, v1alpha1.RequestClose, "2026-11-23T11:30:00Z/10m,only=Kustomization/a")
	for _, at := range []string{"2026-11-23T11:30:00Z", "2026-11-23T11:40:00Z", "2026-11-23T12:00:00Z", "2026-11-23T12:30:00Z", "2026-11-23T13:00:00Z"} {
		g, _ = resolved(g, utc(at), e)
	}
	got := ""
	for _, h := range g.Status.History {
		until := ""
		if h.Until != nil {
			until = h.Until.UTC().Format("15:04")
		}
		got += fmt.Sprintf("%s %s|%s%s|%s|%s|%s\n", h.At.UTC().Format("15:04"), h.Reason, h.Action, h.State, h.Exception, h.Targets, until)
	}
	const some = "Kustomization/a, Kustomization/b, Kustomization/c and 1 more"
	want := "13:00 OverlayEnded||x|" + some + "|\n" +
		"12:00 OverlayStarted|opened|x|" + some + "|13:00\n" +
		"11:30 RequestAccepted|close||Kustomization/a|11:40\n" +
		"11:00 Default|closed|||\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestExceptionsWithTargetsTakeHalfOfHistory(t *testing.T) {
	g := production(closed())
	g.Generation = 1
	e := exception(opensIn(cron("often", "*/2 * * * *", time.Minute)), only("a"), valid("2026-11-23T12:00:00Z", "2026-11-23T20:00:00Z"))
	for at := noon; at.Before(noon.Add(2 * time.Hour)); at = at.Add(time.Minute) {
		g, _ = resolved(g, at, e)
	}
	if n := len(g.Status.History); n != v1alpha1.MaxHistory/2+1 || g.Status.History[n-1].State != isClosed {
		t.Errorf("%d entries, the last one is %+v", n, g.Status.History[n-1])
	}
}

// A selector of several thousand bytes must not displace the other entries.
func TestLongSelectorTakesLittleOfHistory(t *testing.T) {
	g := production(closed())
	g.Generation = 1
	before := exception(called("before"), byDefault(isOpened), only("a"), valid("2026-11-23T11:00:00Z", "2026-11-23T11:30:00Z"))
	long := exception(called("long"), byDefault(isOpened), only("*"), valid("2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"))
	labels := map[string]string{}
	for i := range 32 {
		labels[fmt.Sprintf("k%02d-%s/x", i, strings.Repeat("k", 59))] = strings.Repeat("v", 63)
	}
	long.Spec.Targets[0].MatchLabels, long.Spec.Targets[0].NamespaceSelector = labels, &v1alpha1.LabelSelector{MatchLabels: labels}
	for _, at := range []string{"2026-11-23T11:00:00Z", "2026-11-23T11:30:00Z", "2026-11-23T12:00:00Z", "2026-11-23T13:00:00Z"} {
		g, _ = resolved(g, utc(at), before, long)
	}
	got := ""
	for _, h := range g.Status.History {
		got += fmt.Sprintf("%s %s %d\n", h.Reason, h.Exception, len(h.Targets))
	}
	if want := "OverlayEnded long 256\nOverlayStarted long 256\nOverlayEnded before 15\nDefault  0\nOverlayStarted before 15\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
