package preview

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

const (
	icsTime = "20060102T150405Z"

	// refresh is how often clients should refresh a calendar.
	refresh = "PT15M"

	// plan is part of each event, so that users do not mistake the plan for the state.
	plan = "This is the plan and not the state: requests, changes and failures that come later are not in it."

	// maxText bounds the text of an event, in bytes.
	maxText = 1024

	// unknown is the state of a Gate that does not exist.
	unknown = "unknown"
)

// Calendar writes a report as a calendar in the format of RFC 5545.
type Calendar struct {
	// Range is the range of the report.
	Range
	// Name is the name of the calendar.
	Name string
	// State limits the calendar to intervals in that state, empty means all states. All intervals of an invalid or missing Gate are kept.
	State string
	// Stamp is the time when the content of the calendar last changed.
	Stamp time.Time
	// Lacks names the Gates that are missing from the report, empty if there are none.
	Lacks string
	// Events and Bytes bound the calendar. Zero means no bound. If the calendar would exceed a bound, an additional event at its end
	// reports that later events are missing.
	Events, Bytes int
}

// NotFound returns the timeline of a Gate that does not exist. The timeline consists of one interval with an unknown state for the whole
// range.
func NotFound(gate string, r Range) Timeline {
	return Timeline{Gate: gate, broken: true, Intervals: []Interval{{
		From: metav1.NewTime(r.From), Until: metav1.NewTime(r.Until), Cause: Cause{State: unknown, Reason: v1alpha1.GateNotFoundReason},
	}}}
}

// Write writes a report as a calendar with an event for each interval. If an interval is known to have begun before the range, the event
// begins at that time, so that it is the same in a later calendar.
func (c Calendar) Write(w io.Writer, report *Report) error {
	events, until := c.bounded(c.eventsOf(report))
	about := plan
	if until.Before(c.Until) {
		end := event{uid: "end." + c.Name, start: until, until: c.Until, summary: "The calendar ends here", state: unknown, lines: []string{
			fmt.Sprintf("The calendar %s is limited to %d events and %d bytes. Later events are missing: choose fewer gates, fewer days, or one state.", c.Name, c.Events, c.Bytes),
		}}
		events = append(events, c.text(&end))
		about = "It ends at " + until.UTC().Format(time.RFC3339) + ", because its size is limited. " + plan
	}
	if c.Lacks != "" {
		events = append(events, c.text(&event{uid: "lacks." + c.Name, start: c.From, until: c.Until, summary: c.Lacks, state: unknown, lines: []string{plan}}))
		about = c.Lacks + ". " + about
	}
	var text lines
	text.add("BEGIN", "VCALENDAR")
	text.add("VERSION", "2.0")
	text.add("PRODID", "-//fluxcd//gating-controller//EN")
	text.add("CALSCALE", "GREGORIAN")
	text.add("METHOD", "PUBLISH")
	for _, name := range []string{"NAME", "X-WR-CALNAME"} {
		text.add(name, escapeText(c.Name))
	}
	for _, name := range []string{"DESCRIPTION", "X-WR-CALDESC"} {
		text.add(name, escapeText(about))
	}
	text.add("REFRESH-INTERVAL;VALUE=DURATION", refresh)
	text.add("X-PUBLISHED-TTL", refresh)
	if _, err := io.WriteString(w, text.String()); err != nil {
		return err
	}
	_, err := io.WriteString(w, strings.Join(events, "")+"END:VCALENDAR\r\n")
	return err
}

// event is an event of a calendar.
type event struct {
	uid          string
	start, until time.Time
	summary      string
	state        string
	lines        []string
}

// eventsOf returns the events of a report in order. It returns at most one event more than the limit.
func (c Calendar) eventsOf(report *Report) (events []event) {
	type shown struct {
		of *Timeline
		in *Interval
	}
	var all []shown
	for k := range report.Gates {
		t := &report.Gates[k]
		for _, intervals := range [][]Interval{t.Intervals, t.scoped} {
			for i := range intervals {
				if c.State == "" || intervals[i].State == c.State || t.broken {
					all = append(all, shown{t, &intervals[i]})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b shown) int {
		return cmp.Or(beginOf(a.in).Compare(beginOf(b.in)), strings.Compare(a.of.Gate, b.of.Gate))
	})
	if c.Events > 0 && len(all) > c.Events+1 {
		all = all[:c.Events+1]
	}
	for _, s := range all {
		events = append(events, c.event(s.of, s.in))
	}
	return events
}

// beginOf returns when an interval began, which may be before the range. If that is unknown, it returns the start of the interval in the
// range.
func beginOf(i *Interval) time.Time {
	if i.begun.IsZero() {
		return i.From.Time
	}
	return i.begun
}

func (c Calendar) event(t *Timeline, i *Interval) event {
	e := event{start: beginOf(i), until: i.Until.Time, state: i.State}
	edge := "always"
	if i.From.After(c.From) || !i.begun.IsZero() {
		edge = "from-" + e.start.UTC().Format(icsTime)
	}
	namespace, name, _ := strings.Cut(t.Gate, "/")
	e.uid = fmt.Sprintf("%s-%s.%s.gate.%s", i.State, edge, name, namespace)
	why := []string{i.ShortReason()}
	for _, also := range i.also {
		why = append(why, also.ShortReason())
	}
	because := shortened(strings.Join(why, ", "))
	if i.only != nil {
		e.uid = cmp.Or(i.Exception, digest(i.only)) + "." + e.uid
		because = shortened("only " + gate.Only(i.only) + ", " + because)
	}
	e.summary = fmt.Sprintf("%s: %s (%s)", name, i.State, because)
	e.lines = []string{fmt.Sprintf("Gate %s is %s: %s", t.Gate, i.State, because)}
	if !i.Until.Time.Before(c.Until) {
		e.lines = append(e.lines, "It may continue after this: the calendar ends here.")
	}
	e.lines = append(e.lines, plan)
	if len(t.warnings) > 0 {
		e.lines = append(e.lines, shortened("Warning: "+strings.Join(t.warnings, "; ")))
	}
	if t.Mode != "" {
		e.summary += ", mode " + string(t.Mode)
	}
	return e
}

// digest returns a text that is the same for the same targets of a request.
func digest(targets []v1alpha1.TargetReference) string {
	hash := fnv.New64a()
	for _, t := range targets {
		fmt.Fprintf(hash, "%s/%s/%s\n", t.Kind, t.Namespace, t.Name) //nolint:errcheck // a hash returns no error
	}
	return fmt.Sprintf("only-%016x", hash.Sum64())
}

// shortened truncates a text to maxText bytes.
func shortened(text string) string {
	if len(text) <= maxText {
		return text
	}
	cut := maxText - len("…")
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// bounded returns the texts of the events within the limits. until is the time when the first missing event begins, or the end of the
// range if no event is missing.
func (c Calendar) bounded(events []event) (texts []string, until time.Time) {
	bytes := 0
	for i := range events {
		text := c.text(&events[i])
		bytes += len(text)
		if c.Events > 0 && i >= c.Events || c.Bytes > 0 && bytes > c.Bytes {
			return texts, events[i].start
		}
		texts = append(texts, text)
	}
	return texts, c.Until
}

// text returns an event in the format of RFC 5545.
func (c Calendar) text(e *event) string {
	var text lines
	text.add("BEGIN", "VEVENT")
	text.add("UID", e.uid)
	text.add("DTSTAMP", c.Stamp.UTC().Format(icsTime))
	text.add("DTSTART", e.start.UTC().Format(icsTime))
	text.add("DTEND", e.until.UTC().Format(icsTime))
	text.add("SUMMARY", escapeText(e.summary))
	text.add("DESCRIPTION", escapeText(strings.Join(e.lines, "\n")))
	text.add("CATEGORIES", escapeText(e.state))
	text.add("TRANSP", "TRANSPARENT") // the event blocks no time, so that a Gate that uses this calendar ignores it
	text.add("END", "VEVENT")
	return text.String()
}

// lines contains the lines of a calendar.
type lines struct{ text strings.Builder }

// String returns the text of the calendar.
func (l *lines) String() string { return l.text.String() }

var textEscapes = strings.NewReplacer(`\`, `\\`, ";", `\;`, ",", `\,`, "\r\n", `\n`, "\n", `\n`, "\r", "")

// escapeText escapes a text for a calendar, and removes characters that are not allowed.
func escapeText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\r' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return textEscapes.Replace(text)
}

// maxLine bounds the length of a line in a calendar, in bytes without the line break.
const maxLine = 75

// add adds a property. Long lines are folded between characters.
func (l *lines) add(property, value string) {
	text, room := property+":"+value, maxLine
	for len(text) > room {
		cut := room
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		l.text.WriteString(text[:cut] + "\r\n ")
		text, room = text[cut:], maxLine-1
	}
	l.text.WriteString(text + "\r\n")
}
