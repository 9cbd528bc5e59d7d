package ui

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

func TestTimelineHasEachDayAcrossClockChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		zone, from string
		days       int
		first      string
		hours      float64
	}{
		"an hour less":            {"Europe/Oslo", "2026-03-29", 1, "2026-03-29T00:00:00+01:00", 23},
		"an hour more":            {"Europe/Oslo", "2026-10-25", 1, "2026-10-25T00:00:00+02:00", 25},
		"no midnight":             {"Asia/Beirut", "2026-03-29", 1, "2026-03-29T01:00:00+03:00", 23},
		"no midnight in between":  {"Asia/Beirut", "2026-03-28", 3, "2026-03-28T00:00:00+02:00", 71},
		"no midnight in America":  {"America/Havana", "2026-03-08", 1, "2026-03-08T01:00:00-04:00", 23},
		"half an hour":            {"Australia/Lord_Howe", "2026-10-04", 1, "2026-10-04T00:00:00+10:30", 23.5},
		"three months, one jumps": {"Europe/Oslo", "2026-03-01", 92, "2026-03-01T00:00:00+01:00", 92*24 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			zone, err := tz.Load(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			from, err := time.ParseInLocation(time.DateTime, c.from+" 12:00:00", zone)
			if err != nil {
				t.Fatal(err)
			}
			v := view{Zone: zone, Days: c.days, Range: preview.Range{From: midnight(from, 0), Until: midnight(from, c.days)}}
			if got := v.Range.From.Format(time.RFC3339); got != c.first {
				t.Errorf("it begins at %s, want %s", got, c.first)
			}
			if got := v.Range.Until.Sub(v.Range.From).Hours(); got != c.hours {
				t.Errorf("it has %g hours, want %g", got, c.hours)
			}
			a := axisOf(v)
			last := a.Days[len(a.Days)-1]
			if end := last.X + last.Width; len(a.Days) != c.days || end < 99.999 || end > 100.001 {
				t.Errorf("%d days until %g", len(a.Days), end)
			}
		})
	}
}

func TestLabelIsDrawnOnlyIfItFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		label string
		width float64
		want  bool
	}{
		{"window night", 20, true}, {"window night", 15, false}, {"", 5, false}, {"\u4f11\u65e5\u4f11\u65e5\u4f11\u65e5", 15.5, true}, {"\u4f11\u65e5\u4f11\u65e5\u4f11\u65e5", 15, false},
		{strings.Repeat("x", maxLabel), 100, false},
	} {
		if got := (part{Width: c.width, Label: c.label}).roomy(); got != c.want {
			t.Errorf("%q in %g%%: %v", c.label, c.width, got)
		}
	}
}

func TestDrawingEscapesUntrustedText(t *testing.T) {
	t.Parallel()
	i := preview.Interval{From: metav1.NewTime(noon), Until: metav1.NewTime(noon.AddDate(0, 0, 14)), Cause: preview.Cause{State: "closed", Reason: v1alpha1.ClosePeriodReason, Period: hostile}}
	v := view{Now: noon, Zone: time.UTC, Range: preview.Range{From: noon, Until: i.Until.Time}}
	drawn := string(barOf(preview.Timeline{Gate: hostile, Intervals: []preview.Interval{i}}, v).SVG())
	if strings.Contains(drawn, "<script>") || strings.Contains(drawn, "<b>") || strings.Contains(drawn, "\u202e </") || strings.Count(drawn, "&lt;script&gt;") != 3 {
		t.Error(drawn)
	}
}

func TestIntervalHasDateOnce(t *testing.T) {
	t.Parallel()
	at := func(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }
	if got := span(at(26, 10), at(26, 16)); got != "Thu 26 Nov 10:00 – 16:00" {
		t.Error(got)
	}
	if got := span(at(26, 22), at(27, 5)); got != "Thu 26 Nov 22:00 – Fri 27 Nov 05:00" {
		t.Error(got)
	}
	if got := cut(strings.Repeat("x", 64<<10)); len([]rune(got)) != maxLabel+1 {
		t.Errorf("%d letters", len(got))
	}
}
