package preview_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	ics "github.com/arran4/golang-ical"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	decision "github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ical"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// calendarOf returns the calendar of a report, with the changes of a test.
func calendarOf(t *testing.T, report *preview.Report, in preview.Range, change ...func(*preview.Calendar)) string {
	t.Helper()
	c := preview.Calendar{Range: in, Name: "apps/all", Stamp: day.From.Add(-time.Hour)}
	for _, f := range change {
		f(&c)
	}
	var out bytes.Buffer
	if err := c.Write(&out, report); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func state(state string) func(*preview.Calendar) {
	return func(c *preview.Calendar) { c.State = state }
}

func previewed(t *testing.T, set *preview.Set, in preview.Range) *preview.Report {
	t.Helper()
	report, _, err := set.Preview(in)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// parsed returns the events of a calendar, according to an independent parser. It checks that lines, names and times conform to RFC 5545.
func parsed(t *testing.T, text string) []*ics.VEvent {
	t.Helper()
	if !utf8.ValidString(text) || strings.Count(text, "\n") != strings.Count(text, "\r\n") || strings.Count(text, "\r") != strings.Count(text, "\r\n") {
		t.Errorf("no UTF-8, or half of a line break: %q", text)
	}
	for line := range strings.SplitSeq(text, "\r\n") {
		if len(line) > 75 || !utf8.ValidString(line) {
			t.Errorf("a line of %d bytes: %q", len(line), line)
		}
	}
	calendar, err := ics.ParseCalendar(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range calendar.Events() {
		if names[e.Id()] || e.Id() == "" {
			t.Errorf("there are two events %q", e.Id())
		}
		names[e.Id()] = true
		for _, property := range []ics.ComponentProperty{ics.ComponentPropertyDtStart, ics.ComponentPropertyDtEnd, ics.ComponentPropertyDtstamp} {
			if _, err := time.Parse("20060102T150405Z", e.GetProperty(property).Value); err != nil {
				t.Errorf("no time in UTC: %v", err)
			}
		}
		if !strings.Contains(text, "This is the plan and not the state") {
			t.Errorf("it does not say that it is a plan: %s", text)
		}
	}
	return calendar.Events()
}

// stretchesOf formats the intervals of events, one per line.
func stretchesOf(t *testing.T, events []*ics.VEvent) (lines []string) {
	t.Helper()
	for _, e := range events {
		start, err := e.GetStartAt()
		end, err2 := e.GetEndAt()
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %s %s", start.UTC().Format(time.RFC3339), end.UTC().Format(time.RFC3339), e.GetProperty(ics.ComponentPropertySummary).Value))
	}
	return lines
}

func TestCalendarHasEventPerInterval(t *testing.T) {
	report := previewed(t, manifests(t, gate("web", "12:00")), day)
	got := calendarOf(t, report, day, state("opened"))
	want := strings.ReplaceAll(`BEGIN:VCALENDAR
VERSION:2.0
PRODID:-//fluxcd//gating-controller//EN
CALSCALE:GREGORIAN
METHOD:PUBLISH
NAME:apps/all
X-WR-CALNAME:apps/all
DESCRIPTION:This is the plan and not the state: requests\, changes and fail
 ures that come later are not in it.
X-WR-CALDESC:This is the plan and not the state: requests\, changes and fai
 lures that come later are not in it.
REFRESH-INTERVAL;VALUE=DURATION:PT15M
X-PUBLISHED-TTL:PT15M
BEGIN:VEVENT
UID:opened-from-20261124T100000Z.web.gate.apps
DTSTAMP:20261123T230000Z
DTSTART:20261124T100000Z
DTEND:20261124T120000Z
SUMMARY:web: opened (open period day)
DESCRIPTION:Gate apps/web is opened: open period day\nThis is the plan and 
 not the state: requests\, changes and failures that come later are not in 
 it.
CATEGORIES:opened
TRANSP:TRANSPARENT
END:VEVENT
END:VCALENDAR
`, "\n", "\r\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for s, want := range map[string]int{"": 3, "closed": 2, "opened": 1} {
		if n := len(parsed(t, calendarOf(t, report, day, state(s)))); n != want {
			t.Errorf("%d events of state %q, want %d", n, s, want)
		}
	}
}

func TestCalendarTextsRoundTrip(t *testing.T) {
	events := parsed(t, calendarOf(t, shown(), day))
	if want := `<web>&"': closed (close period a, b; c\d` + "\n" + strings.Repeat("日", 40) + ")"; events[0].GetProperty(ics.ComponentPropertySummary).Value != want {
		t.Errorf("got %q, want %q", events[0].GetProperty(ics.ComponentPropertySummary).Value, want)
	}
}

// An independent parser and our own read the same intervals, to the second.
func TestOtherParserReadsSameIntervals(t *testing.T) {
	in := preview.Range{From: day.From, Until: day.From.AddDate(0, 0, 200)}
	set := manifests(t, strings.Replace(gate("web", "12:00"), "default: closed", "timeZone: Europe/Oslo\n  default: closed", 1), gate("shop", "14:30"), exception("late", "shop"))
	report := previewed(t, set, in)
	text := calendarOf(t, report, in, state("opened"))
	var want []string
	for _, g := range report.Gates {
		for _, i := range g.Intervals {
			if i.State == "opened" {
				want = append(want, fmt.Sprintf("%s %s %s: opened (%s)", i.From.UTC().Format(time.RFC3339), i.Until.UTC().Format(time.RFC3339), strings.TrimPrefix(g.Gate, "apps/"), i.ShortReason()))
			}
		}
	}
	slices.Sort(want)
	got := stretchesOf(t, parsed(t, text))
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) != 401 {
		t.Errorf("%d events, want %d: %q", len(got), len(want), got)
	}

	ours, err := ical.Read(strings.ReplaceAll(text, "TRANSP:TRANSPARENT", "TRANSP:OPAQUE"), ical.Options{From: in.From, Until: in.Until})
	if err != nil {
		t.Fatal(err)
	}
	var read []string
	for _, o := range ours.Occurrences {
		read = append(read, fmt.Sprintf("%s %s %s", o.Start.UTC().Format(time.RFC3339), o.End.UTC().Format(time.RFC3339), o.Summary))
	}
	slices.Sort(read)
	if !slices.Equal(read, want) {
		t.Errorf("ours reads %d, want %d: %q", len(read), len(want), read)
	}
	if again, err := ical.Read(text, ical.Options{From: in.From, Until: in.Until}); err != nil || len(again.Occurrences) > 0 {
		t.Errorf("as the calendar of a gate it counts: %d, %v", len(again.Occurrences), err)
	}
}

// uids returns the start of each event by its UID.
func uids(t *testing.T, set *preview.Set, in preview.Range) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, e := range parsed(t, calendarOf(t, previewed(t, set, in), in)) {
		names[e.Id()] = e.GetProperty(ics.ComponentPropertyDtStart).Value
	}
	return names
}

func TestEventKeepsUIDAndStart(t *testing.T) {
	created := func(g *v1alpha1.Gate) { g.CreationTimestamp = metav1.NewTime(day.From.AddDate(0, -3, 0)) }
	shut := func(g *v1alpha1.Gate) { g.Spec.OpenPeriods, g.Spec.Default = nil, v1alpha1.StateClosed }
	frozen := func(g *v1alpha1.Gate) {
		from, until := metav1.NewTime(day.From.AddDate(0, 0, 2)), metav1.NewTime(day.From.AddDate(0, 0, 40))
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(until.Time)}}}
	}
	for name, set := range map[string]*preview.Set{
		"in manifests":               manifests(t, gate("web", "12:00")),
		"in a cluster":               preview.FromCluster([]*v1alpha1.Gate{known("web", created), known("shop", created)}, nil),
		"with a long freeze":         preview.FromCluster([]*v1alpha1.Gate{known("web", created, frozen)}, nil),
		"closed as long as it lives": preview.FromCluster([]*v1alpha1.Gate{known("web", created, shut)}, nil),
	} {
		t.Run(name, func(t *testing.T) {
			first := uids(t, set, preview.Range{From: day.From, Until: day.From.AddDate(0, 0, 60)})
			seen := 0
			for hours := range 24 * 45 {
				if hours%7 > 0 {
					continue
				}
				from := day.From.Add(time.Duration(hours) * time.Hour)
				for uid, start := range uids(t, set, preview.Range{From: from, Until: from.AddDate(0, 0, 1)}) {
					if first[uid] != start {
						t.Fatalf("at %s, %s begins at %s, and before at %q", from, uid, start, first[uid])
					}
					seen++
				}
			}
			if seen < 100 {
				t.Errorf("only %d events", seen)
			}
		})
	}
}

func TestEventKeepsUIDWhenEndMoves(t *testing.T) {
	before, after := uids(t, manifests(t, gate("web", "12:00")), day), uids(t, manifests(t, gate("web", "13:00")), day)
	if uid := "opened-from-20261124T100000Z.web.gate.apps"; before[uid] == "" || after[uid] == "" {
		t.Errorf("before %q, after %q", before, after)
	}
}

func TestEventUIDsDifferBetweenGates(t *testing.T) {
	report := &preview.Report{}
	for _, name := range []string{"apps/web", "apps/web.gate.apps", "apps.gate.web/apps", "web/web.gate.apps", "apps/gate", "gate/apps", "apps/web.gate"} {
		report.Gates = append(report.Gates, preview.NotFound(name, day), preview.Timeline{Gate: name, Intervals: shown().Gates[0].Intervals})
	}
	if n := len(parsed(t, calendarOf(t, report, day))); n != 28 { // parsed checks that no UID occurs twice
		t.Errorf("%d events", n)
	}
}

func TestEventHasAllCausesOfItsInterval(t *testing.T) {
	freeze := strings.Replace(gate("web", "12:00"), "openPeriods:", "closePeriods: [{name: freeze, from: \"2026-11-24T15:00:00Z\", until: \"2026-11-27T15:00:00Z\"}]\n  openPeriods:", 1)
	in := preview.Range{From: day.From, Until: day.From.AddDate(0, 0, 10)}
	got := stretchesOf(t, parsed(t, calendarOf(t, previewed(t, manifests(t, freeze), in), in, state("closed"))))
	if want := "2026-11-24T12:00:00Z 2026-11-28T10:00:00Z web: closed (outside open periods, close period freeze)"; !slices.Contains(got, want) {
		t.Errorf("no %s in %q", want, got)
	}
}

func TestExceptionForSomeTargetsHasSeparateEvents(t *testing.T) {
	e := extending("hotfix", "web")
	e.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}}
	set := preview.FromCluster([]*v1alpha1.Gate{known("web")}, []*v1alpha1.GateException{e})
	events := parsed(t, calendarOf(t, previewed(t, set, day), day, state("opened")))
	want := "web: opened (only Kustomization/apps, exception hotfix)"
	if got := stretchesOf(t, events); len(got) != 2 || !strings.HasSuffix(got[1], want) || strings.Contains(got[0], "hotfix") {
		t.Errorf("got %q, want one with %q", got, want)
	}
	all := previewed(t, set, day)
	if n := len(all.Gates[0].Intervals); n != 3 {
		t.Errorf("the timeline of the gate has %d intervals: %+v", n, all.Gates[0].Intervals)
	}
	if some := previewed(t, set.ForTarget(names("apps")), day).Gates[0].Intervals; len(some) != 5 || some[3].State != "opened" || some[3].Exception != "hotfix" {
		t.Errorf("the timeline of the target is %+v", some)
	}
	if other := previewed(t, set.ForTarget(names("other")), day).Gates[0].Intervals; len(other) != 3 {
		t.Errorf("the timeline of another target is %+v", other)
	}
}

// names returns a function for Set.ForTarget that selects a target by its name.
func names(name string) func(*v1alpha1.TargetReference, string) bool {
	return func(ref *v1alpha1.TargetReference, namespace string) bool {
		return ref.Name == name && namespace == "apps"
	}
}

func TestRequestForSomeTargetsHasSeparateEvents(t *testing.T) {
	web := known("web")
	for _, r := range []struct{ action, value, now string }{
		{"open", "2026-11-23T20:00:00Z/6h,only=Kustomization/apps", "2026-11-23T20:00:00Z"},
		{"close", "2026-11-23T21:00:00Z/unlimited,only=Kustomization/other", "2026-11-23T21:00:00Z"},
		{"close", "2026-11-23T21:00:00Z/unlimited,only=Kustomization/third", "2026-11-23T21:00:01Z"},
		{"close", "2026-11-24T01:00:00Z/30m,only=Kustomization/apps", "2026-11-23T22:00:00Z"},
		{"open", "2026-11-24T20:00:00Z/1h,only=Kustomization/apps", "2026-11-23T22:00:00Z"},
		{"open", "2026-11-24T11:00:00Z/1h,only=Kustomization/other", "2026-11-23T22:00:01Z"},
	} {
		now, _ := time.Parse(time.RFC3339, r.now)
		metav1.SetMetaDataAnnotation(&web.ObjectMeta, r.action+".gate.fluxcd.io/requestedAt", r.value)
		for _, handled := range decision.ApplyRequests(web, ledger.Stamped, now) {
			if handled.Err != nil {
				t.Fatal(handled.Err)
			}
		}
	}
	set := preview.FromCluster([]*v1alpha1.Gate{web}, nil)
	got := stretchesOf(t, parsed(t, calendarOf(t, previewed(t, set, day), day)))
	for _, want := range []string{
		"2026-11-23T20:00:00Z 2026-11-24T01:00:00Z web: opened (only Kustomization/apps, open request)",
		"2026-11-23T21:00:00Z 2026-11-24T11:00:00Z web: closed (only Kustomization/other, close request)",
		"2026-11-24T01:00:00Z 2026-11-24T01:30:00Z web: closed (only Kustomization/apps, close request)",
		"2026-11-24T20:00:00Z 2026-11-24T21:00:00Z web: opened (only Kustomization/apps, open request)",
		"2026-11-24T11:00:00Z 2026-11-24T12:00:00Z web: opened (only Kustomization/other, open request)",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s in %q", want, got)
		}
	}
	for name, want := range map[string]string{
		"apps":  "00:00-01:00 opened open request, 01:00-01:30 closed close request, 01:30-10:00 closed outside open periods, 10:00-12:00 opened open period day, 12:00-20:00 closed outside open periods, 20:00-21:00 opened open request, 21:00-00:00 closed outside open periods, ",
		"other": "00:00-11:00 closed close request, 11:00-12:00 opened open request, 12:00-00:00 closed outside open periods, ",
		"none":  "00:00-10:00 closed outside open periods, 10:00-12:00 opened open period day, 12:00-00:00 closed outside open periods, ",
	} {
		text := ""
		for _, i := range previewed(t, set.ForTarget(names(name)), day).Gates[0].Intervals {
			text += fmt.Sprintf("%s-%s %s %s, ", i.From.UTC().Format("15:04"), i.Until.UTC().Format("15:04"), i.State, i.ShortReason())
		}
		if text != want {
			t.Errorf("%s: got %q, want %q", name, text, want)
		}
	}
}

func TestUndecidableGateIsInEachCalendar(t *testing.T) {
	nowhere := func(g *v1alpha1.Gate) { g.Spec.TimeZone = "Nowhere" }
	holidays := func(g *v1alpha1.Gate) {
		g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "holidays", Calendar: &v1alpha1.CalendarReference{
			ConfigMapRef: v1alpha1.ConfigMapKeyReference{Name: "days", Key: "no.ics"}}}}}
	}
	broken := preview.FromCluster([]*v1alpha1.Gate{known("shop", holidays)}, nil)
	broken.AddConfigMap(preview.ConfigMap{Namespace: "apps", Name: "days"}, (*timetable.Files)(nil), errors.New("does not exist"))
	missing := previewed(t, manifests(t), day)
	missing.Gates = append(missing.Gates, preview.NotFound("apps/gone", day))
	for name, tc := range map[string]struct {
		report       *preview.Report
		summary, why string
	}{
		"an invalid spec":       {previewed(t, preview.FromCluster([]*v1alpha1.Gate{known("web", nowhere)}, nil), day), "web: closed (invalid spec)", "Warning: the spec is invalid: spec.timeZone: "},
		"a broken calendar":     {previewed(t, broken, day), "shop: closed (close period holidays)", "ConfigMap apps/days, key no.ics: does not exist: the preview treats it as closed"},
		"a gate that is not on": {missing, "gone: unknown (gate not found)", "Gate apps/gone is unknown: gate not found"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, s := range []string{"opened", "closed", ""} {
				events := parsed(t, calendarOf(t, tc.report, day, state(s)))
				if len(events) != 1 {
					t.Fatalf("%d events of %q", len(events), s)
				}
				about := events[0].GetProperty(ics.ComponentPropertyDescription).Value
				if got := events[0].GetProperty(ics.ComponentPropertySummary).Value; got != tc.summary || !strings.Contains(about, tc.why) || !strings.Contains(about, "It may continue after this") {
					t.Errorf("%q: %q", got, about)
				}
				if end := events[0].GetProperty(ics.ComponentPropertyDtEnd).Value; end != "20261125T000000Z" {
					t.Errorf("it ends at %s", end)
				}
			}
		})
	}
}

func TestCalendarOverLimitHasItsEnd(t *testing.T) {
	in := preview.Range{From: day.From, Until: day.From.AddDate(0, 0, 60)}
	report := previewed(t, manifests(t, gate("web", "12:00"), gate("shop", "13:00")), in)
	for name, bound := range map[string]func(*preview.Calendar){
		"events": func(c *preview.Calendar) { c.Events, c.Bytes = 10, 1<<20 },
		"bytes":  func(c *preview.Calendar) { c.Events, c.Bytes = 2000, 4000 },
	} {
		text := calendarOf(t, report, in, bound)
		events := parsed(t, text)
		last := events[len(events)-1]
		got := last.GetProperty(ics.ComponentPropertySummary).Value + last.GetProperty(ics.ComponentPropertyDtStart).Value
		if len(events) != 11 || got != "The calendar ends here20261126T100000Z" || !strings.Contains(text, "X-WR-CALDESC:It ends at 2026-11-26T10:00:00Z\\, because its size") {
			t.Errorf("%s: %d events, %s: %s", name, len(events), got, text)
		}
	}
}

func TestOnlyShownIntervalsAreComputed(t *testing.T) {
	set := preview.FromCluster([]*v1alpha1.Gate{known("web")}, nil)
	set.AtMost(7)
	if n := len(previewed(t, set, preview.Range{From: day.From, Until: day.From.AddDate(1, 0, 0)}).Gates[0].Intervals); n != 7 {
		t.Errorf("%d intervals", n)
	}
}
