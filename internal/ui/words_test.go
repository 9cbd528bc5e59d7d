package ui

import (
	"net/url"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
)

func TestDistanceUsesLargestUnit(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		59 * time.Second: "now", -59 * time.Second: "now", time.Minute: "in 1 min", -59 * time.Minute: "59 min ago",
		time.Hour: "in 1 h", 48*time.Hour - 1: "in 47 h", 48 * time.Hour: "in 2 d", -48 * time.Hour: "2 d ago",
	} {
		if got := distance(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

func TestDayNamesAreShorterInLongTimelines(t *testing.T) {
	t.Parallel()
	for day, weekend := range map[int]bool{27: false, 28: true, 29: true, 30: false} { // from a Friday to a Monday
		if got := isWeekend(time.Date(2026, 11, day, 12, 0, 0, 0, time.UTC)); got != weekend {
			t.Errorf("day %d is a weekend: %v", day, got)
		}
	}
	monday := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for days, want := range map[int][2]string{
		7: {"Mon 30 Nov", "Tue 1 Dec"}, 8: {"Mon 30", "Tue 1"}, 14: {"Mon 30", "Tue 1"}, 15: {"30 Nov", ""},
	} {
		if got := [2]string{nameOf(monday, days), nameOf(monday.AddDate(0, 0, 1), days)}; got != want {
			t.Errorf("in %d days: %q, want %q", days, got, want)
		}
	}
}

func TestMarkOfNowIsOnlyInItsRange(t *testing.T) {
	t.Parallel()
	r := preview.Range{From: noon, Until: noon.Add(4 * time.Hour)}
	for now, want := range map[time.Duration]float64{-1: -1, 0: 0, time.Hour: 25, 4 * time.Hour: -1} {
		if got := nowIn(noon.Add(now), r); got != want {
			t.Errorf("%s after the start: %g, want %g", now, got, want)
		}
	}
}

func TestHistoryEntryHasRefusal(t *testing.T) {
	t.Parallel()
	e := v1alpha1.HistoryEntry{State: v1alpha1.StateClosed}
	plain := happened(e)
	e.Refused = "too late"
	if got, want := happened(e), plain+" : too late"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestHistoryEntryNamesTargets(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]v1alpha1.HistoryEntry{
		"opened, exception hotfix, only Kustomization/apps": {State: v1alpha1.StateOpened, Reason: v1alpha1.OverlayStartedReason, Exception: "hotfix"},
		"end of exception hotfix, only Kustomization/apps":  {Reason: v1alpha1.OverlayEndedReason, Exception: "hotfix"},
		"open RequestAccepted, only Kustomization/apps":     {Action: v1alpha1.RequestOpen, Reason: v1alpha1.RequestAcceptedReason},
	} {
		e.Targets = "Kustomization/apps"
		if got := happened(e); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLinksReplaceOneParameter(t *testing.T) {
	t.Parallel()
	v := view{Days: 7, query: url.Values{"zone": {"UTC"}, "days": {"7"}}}
	for value, want := range map[string]string{"": "?days=7", "gate": "?days=7&zone=gate"} {
		if got := v.With("zone", value); got != want {
			t.Errorf("zone %q: %s, want %s", value, got, want)
		}
	}
	want := []choice{
		{"Day", "?days=1&zone=UTC", false}, {"Week", "?days=7&zone=UTC", true},
		{"Two weeks", "?days=14&zone=UTC", false}, {"Month", "?days=31&zone=UTC", false},
	}
	for i, got := range v.Spans() {
		if i >= len(want) || got != want[i] {
			t.Errorf("choice %d is %v, want one of %v", i, got, want)
		}
	}
}
