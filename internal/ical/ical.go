package ical

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Bounds of a text. Exceeding one of them is an error.
const (
	// MaxText bounds the size in bytes.
	MaxText = 1 << 20
	// MaxEvents bounds the number of VEVENTs and VFREEBUSYs, including those that do not count.
	MaxEvents = 5_000
	// MaxOccurrences bounds the number of occurrences.
	MaxOccurrences = 50_000
)

// Options determine what to read from a text.
type Options struct {
	// Zone is the zone of dates and of times without a zone. Nil means UTC.
	Zone *schedule.Zone
	// From and Until are the interval [From, Until) to read. All occurrences that overlap with it are returned.
	From, Until time.Time
	// Categories selects the events with at least one of these categories, ignoring case. If it is empty, all events are selected, even those
	// without categories.
	Categories []string
	// Opens is true if the events open a Gate. Then an event counts only if it is unambiguous.
	Opens bool
	// Name returns the part of a SUMMARY to keep. If it is nil, all of it is kept. It is called once for each event.
	Name func(summary string) string
}

// Calendar is the result of reading a text.
type Calendar struct {
	// Occurrences lists the occurrences of the events that count, sorted by start, then by end. They may overlap.
	Occurrences []Occurrence
	// NotCounted lists the other events, sorted by line.
	NotCounted []NotCounted
	// Warnings are about parts of the text that may be mistakes, at most 20, sorted by line.
	Warnings []*Error
	// Events is the number of VEVENTs and VFREEBUSYs.
	Events int
}

// Occurrence is an occurrence of an event, in [Start, End).
type Occurrence struct {
	Start, End time.Time
	// Summary and UID are as written in the text and may be empty. Summary may be long and have line breaks.
	Summary, UID string
	// Line is the line at which the VEVENT or VFREEBUSY begins.
	Line int
}

// Causes why an event does not count. Older versions of an event have other causes.
const (
	Cancelled       = "STATUS is CANCELLED"
	Transparent     = "TRANSP is TRANSPARENT: it is shown as free"
	OtherCategories = "it has none of the selected categories"
)

// NotCounted is an event that does not count.
type NotCounted struct {
	// Line is the line at which the VEVENT or VFREEBUSY begins.
	Line         int
	Summary, UID string
	// Cause is the reason why it does not count, such as [Cancelled].
	Cause string
}

// Period returns a period that covers all occurrences. The names of its events are their summaries.
func (c *Calendar) Period(name string) schedule.Period {
	spans := make([]schedule.CalendarEvent, len(c.Occurrences))
	for i, o := range c.Occurrences {
		spans[i] = schedule.CalendarEvent{Start: o.Start, End: o.End, Name: o.Summary}
	}
	return schedule.Calendar(name, spans)
}

// reader reads one text.
type reader struct {
	// zone is the zone of dates and floating times.
	zone, utc   *schedule.Zone
	from, until int64
	left        *left
	name        func(string) string
	// zones holds the zones of the current VCALENDAR.
	zones *zones
	// warnings lists the warnings about the current event. It may be nil.
	warnings *Errors
}

// warn adds a warning about a property to the warnings about the current event.
func (r *reader) warn(p *property, format string, args ...any) {
	if r.warnings != nil {
		r.warnings.add(p.errorf(format, args...))
	}
}

// Text is a parsed iCalendar text.
type Text struct {
	// Effort is the number of days that were evaluated for its rules.
	Effort int

	events []*event
	// categories maps the folded name of each category of the events to a number.
	categories map[string]int
}

// Read reads an iCalendar text. Errors in the text are of type [Errors].
func Read(text string, o Options) (*Calendar, error) {
	t, err := Parse(text, o)
	if err != nil {
		return nil, err
	}
	return t.Select(o.Categories, o.Opens)
}

// Parse reads everything that does not depend on the selection of events. It ignores errors in events that do not count. Errors in the
// times of other events are returned by Select, unless Parse fails anyway. Errors in the text are of type [Errors].
func Parse(text string, o Options) (*Text, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), MaxText)
	}
	if !o.From.Before(o.Until) {
		return nil, errors.New("must be read for a range that ends after it starts")
	}
	utc, err := schedule.LoadZone("")
	if err != nil {
		return nil, err
	}
	r := &reader{
		zone: cmp.Or(o.Zone, utc), utc: utc, from: o.From.Unix(), until: o.Until.Unix(),
		left: &left{effort, maxOnsets, MaxOccurrences}, name: o.Name,
	}
	calendars, wrong, err := parse(text)
	wrong.add(err)
	events := r.events(calendars, &wrong)
	r.expand(events)
	if len(wrong) > 0 {
		for _, e := range events {
			if e.discounted == "" && !e.unread {
				wrong.add(e.err)
			}
		}
		return nil, wrong.err()
	}
	t := &Text{Effort: effort - r.left.days, events: events, categories: map[string]int{}}
	for _, e := range events {
		t.categorize(e)
	}
	return t, nil
}

// expand finds the occurrences of all events that count.
func (r *reader) expand(events []*event) {
	instances, followed := map[string][]*event{}, map[string]bool{}
	for _, e := range events {
		if e.instance != nil && e.uid != "" {
			instances[e.uid] = append(instances[e.uid], e)
		}
	}
	for _, e := range events {
		if e.discounted != "" {
			continue
		}
		var own []*event
		if e.instance == nil {
			own, followed[e.uid] = instances[e.uid], true
		}
		in := *r
		in.zones, in.warnings = e.zones, &e.warnings
		e.err = in.occur(e, own)
	}
	for _, e := range events {
		if e.instance == nil || e.matched || e.superseded || !followed[e.uid] {
			continue
		}
		if at := e.instance.at(); at >= r.from && at < r.until {
			e.warnings.add(e.component.errorf("has a RECURRENCE-ID that matches no occurrence of the event with the same UID"))
		}
	}
}

// categorize sets the numbers of the categories of an event.
func (t *Text) categorize(e *event) {
	for _, p := range e.component.all("CATEGORIES") {
		for _, category := range p.texts() {
			category = fold(strings.TrimSpace(category))
			n, ok := t.categories[category]
			if !ok {
				n = len(t.categories)
				t.categories[category] = n
			}
			e.categories = append(e.categories, n)
		}
	}
}

// fold returns the same text for all texts that differ only in case.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// Select returns the events with at least one of the categories, or all events if there are no categories. opens is true for open periods,
// as in Options. Errors in these events are of type [Errors].
func (t *Text) Select(categories []string, opens bool) (*Calendar, error) {
	counts := make([]bool, len(t.categories))
	for _, category := range categories {
		if n, ok := t.categories[fold(category)]; ok {
			counts[n] = true
		}
	}
	found := &Calendar{Events: len(t.events)}
	var wrong, unread, warnings Errors
	if len(t.events) == 0 {
		warnings.add(&Error{1, vcalendar, "has no events"})
	}
	for _, e := range t.events {
		cause := e.discounted
		if cause == "" && len(categories) > 0 && !slices.ContainsFunc(e.categories, func(n int) bool { return counts[n] }) {
			cause = OtherCategories
		}
		if cause != OtherCategories {
			warnings.add(e.warnings.err())
		}
		if cause == "" && opens {
			wrong.add(e.ambiguous)
			cause = e.closesOnly
		}
		if cause != "" {
			found.NotCounted = append(found.NotCounted, NotCounted{Line: e.line, Summary: e.summary, UID: e.uid, Cause: cause})
			continue
		}
		if e.unread {
			unread.add(e.err)
		} else {
			wrong.add(e.err)
		}
		for _, s := range e.occurrences {
			found.Occurrences = append(found.Occurrences, Occurrence{
				Start: instant(s.from), End: instant(s.until), Summary: e.summary, UID: e.uid, Line: e.line,
			})
		}
	}
	if len(wrong) == 0 && len(unread) > 0 {
		wrong = unread[:1]
	}
	if err := wrong.err(); err != nil {
		return nil, err
	}
	found.Warnings = warnings.first()
	slices.SortStableFunc(found.Occurrences, func(a, b Occurrence) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End), cmp.Compare(a.Line, b.Line))
	})
	// An occurrence may be both in a rule and in RDATE.
	found.Occurrences = slices.Compact(found.Occurrences)
	slices.SortStableFunc(found.NotCounted, func(a, b NotCounted) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

func instant(t int64) time.Time { return time.Unix(t, 0).UTC() }
