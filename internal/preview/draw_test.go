package preview_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/tz"
)

func at(hour int) metav1.Time { return metav1.NewTime(day.From.Add(time.Duration(hour) * time.Hour)) }

// shown returns a report of a day that is closed, then opened from 10:00 to 12:00, and then closed. The names must be escaped or truncated.
func shown() *preview.Report {
	return &preview.Report{Gates: []preview.Timeline{{Gate: `apps/<web>&"'`, Intervals: []preview.Interval{
		{From: at(0), Until: at(10), Cause: preview.Cause{State: "closed", Reason: "ClosePeriod", Period: "a, b; c\\d\n" + strings.Repeat("日", 40)}},
		{From: at(10), Until: at(12), Cause: preview.Cause{State: "opened", Reason: "OpenPeriod", Period: "day"}},
		{From: at(12), Until: at(24), Cause: preview.Cause{State: "closed", Reason: "OutsideOpenPeriods"}},
	}}}}
}

func svgOf(t *testing.T, report *preview.Report, in preview.Range) string {
	t.Helper()
	var out bytes.Buffer
	if err := report.SVG(&out, in); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPictureIsXMLWithoutScriptsAndHasTexts(t *testing.T) {
	got := svgOf(t, shown(), day)
	decoder, elements := xml.NewDecoder(strings.NewReader(got)), map[string]int{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, got)
		}
		if element, ok := token.(xml.StartElement); ok {
			elements[element.Name.Local]++
		}
	}
	if elements["script"] > 0 || elements["web"] > 0 || elements["title"] != 5 {
		t.Errorf("%v", elements)
	}
	for _, want := range []string{
		"&lt;web&gt;&amp;&#34;&#39; is opened from Tue 2026-11-24 10:00 UTC until Tue 2026-11-24 12:00 UTC: open period day</title>",
		`style="fill:url(#hatch)"/>`, "prefers-color-scheme: dark", ">closed</text>", ">opened</text>", ">Tue 11-24</text>",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}

func TestOnlyClosedBarsHavePattern(t *testing.T) {
	for line := range strings.Lines(svgOf(t, shown(), day)) {
		if strings.Contains(line, `class="bar `) && strings.Contains(line, `class="bar closed"`) != strings.Contains(line, "hatch") {
			t.Errorf("%s", line)
		}
	}
}

func TestPictureOfLongRangeIsSmall(t *testing.T) {
	in := preview.Range{From: day.From, Until: day.From.AddDate(5000, 0, 0)}
	got := svgOf(t, &preview.Report{}, in)
	if n := strings.Count(got, "<line class=\"day\""); n < 10 || n > 300 {
		t.Errorf("%d days", n)
	}
}

func TestBarCharacters(t *testing.T) {
	line := shown().Gates[0]
	for columns, want := range map[int]string{
		24: "░░░░░░░░░░██░░░░░░░░░░░░", 12: "░░░░░█░░░░░░", 6: "░░▒░░░", 1: "▒",
	} {
		if got := line.Bar(day, columns); got != want {
			t.Errorf("%d columns: %s, want %s", columns, got, want)
		}
	}
	if got := (&preview.Timeline{}).Bar(day, 3); got != "   " {
		t.Errorf("of nothing: %q", got)
	}
}

func TestBarShowsShortOpening(t *testing.T) {
	line := preview.Timeline{Intervals: []preview.Interval{
		{From: at(0), Until: at(3), Cause: preview.Cause{State: "closed"}}, {From: at(3), Until: metav1.NewTime(at(3).Add(time.Second)), Cause: preview.Cause{State: "opened"}},
		{From: metav1.NewTime(at(3).Add(time.Second)), Until: at(24), Cause: preview.Cause{State: "closed"}},
	}}
	if got := line.Bar(day, 8); got != "░▒░░░░░░" {
		t.Errorf("%s", got)
	}
}

func TestAxisHasDaysOfZone(t *testing.T) {
	oslo, err := tz.Load("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 11, 24, 12, 0, 0, 0, oslo)
	for _, tc := range []struct {
		days, columns int
		want          string
	}{
		{2, 48, strings.Repeat(" ", 12) + "|Wed 11-25" + strings.Repeat(" ", 14) + "|Thu 11-26"},
		{7, 56, "    |11-25  |11-26  |11-27  |11-28  |11-29  |11-30  |"},
		{14, 28, " |11-25  |11-29  |12-03"},
	} {
		if got := (preview.Range{From: noon, Until: noon.AddDate(0, 0, tc.days)}).Axis(tc.columns); got != tc.want {
			t.Errorf("%d days in %d columns:\n%s|\n%s|", tc.days, tc.columns, got, tc.want)
		}
	}
}
