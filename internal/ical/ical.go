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

// Bounds of a text. More than that is an error.
const (
	// MaxText is in bytes.
	MaxText = 1 << 20
	// MaxEvents counts each VEVENT and VFREEBUSY, also those that do not count.
	MaxEvents = 5_000
	// MaxOccurrences counts those that are returned.
	MaxOccurrences = 50_000
)

// Options say what to read from a text.
type Options struct {
	// Zone is that of dates and of times without a zone. Nil is UTC.
	Zone *schedule.Zone
	// From and Until are the stretch [From, Until) to look at: all occurrences are returned
	// that have a part in it.
	From, Until time.Time
	// Categories that count: an event must have one of them. Their case does not matter. If
	// there are none, events of all categories count, and those without.
	Categories []string
	// Opens is whether the events open something, so that an event counts only if there is no doubt about it.
	Opens bool
	// Name returns what is kept of the SUMMARY of an event, all of it if nil. It is called once per event.
	Name func(summary string) string
}

// Calendar is what a text means.
type Calendar struct {
	// Occurrences of the events that count, sorted by start, then by end. They may overlap.
	Occurrences []Occurrence
	// NotCounted are the other events, sorted by line.
	NotCounted []NotCounted
	// Warnings are doubtful parts of the text that do not keep it from being read, at most 20, sorted by line.
	Warnings []*Error
	// Events is how many events there are, each VEVENT and VFREEBUSY for itself.
	Events int
}

// Occurrence is one of an event, in [Start, End).
type Occurrence struct {
	Start, End time.Time
	// Summary and UID are as written in the text and may be empty. Summary may have line
	// breaks and be long.
	Summary, UID string
	// Line is where the VEVENT begins.
	Line int
}

// Causes why an event does not count. Besides, older versions of an event do not.
const (
	Cancelled       = "STATUS is CANCELLED"
	Transparent     = "TRANSP is TRANSPARENT: it is shown as free"
	OtherCategories = "none of its categories is asked for"
)

// NotCounted is an event that does not count.
type NotCounted struct {
	// Line is where the VEVENT begins.
	Line         int
	Summary, UID string
	// Cause says why, such as [Cancelled].
	Cause string
}

// Period returns the period of all occurrences, whose events have the names of their
// summaries.
func (c *Calendar) Period(name string) schedule.Period {
	spans := make([]schedule.CalendarEvent, len(c.Occurrences))
	for i, o := range c.Occurrences {
		spans[i] = schedule.CalendarEvent{Start: o.Start, End: o.End, Name: o.Summary}
	}
	return schedule.Calendar(name, spans)
}

// reader reads one text.
type reader struct {
	// zone is that of floating times.
	zone, utc   *schedule.Zone
	from, until int64
	left        *left
	name        func(string) string
	// zones are those of the VCALENDAR that is read.
	zones *zones
	// warnings are those of the event that is read.
	warnings *Errors
}

// warn adds a warning about a property.
func (r *reader) warn(p *property, format string, args ...any) {
	if r.warnings != nil {
		r.warnings.add(p.errorf(format, args...))
	}
}

// Text is an iCalendar text that has been parsed.
type Text struct {
	// Effort is how many days its rules have looked at.
	Effort int

	events []*event
	// categories are those of all events, each with a number.
	categories map[string]int
}

// Read reads an iCalendar text. Errors in it are [Errors].
func Read(text string, o Options) (*Calendar, error) {
	t, err := Parse(text, o)
	if err != nil {
		return nil, err
	}
	return t.Select(o.Categories, o.Opens)
}

// Parse reads what does not depend on categories. An error in an event that does not count is none. Errors in the text are [Errors].
func Parse(text string, o Options) (*Text, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("has %d bytes, more than %d", len(text), MaxText)
	}
	if !o.From.Before(o.Until) {
		return nil, errors.New("must be read from an instant to a later one")
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
			e.warnings.add(e.component.errorf("has a RECURRENCE-ID that is no occurrence of the event with its UID"))
		}
	}
}

// categorize numbers the categories of an event.
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

// fold returns the same text for all texts that differ in case only.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// Select returns the events of some categories, all if there are none, for periods that open or for those that close. Errors in them are [Errors].
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
	// A date may be in a rule and in RDATE too.
	found.Occurrences = slices.Compact(found.Occurrences)
	slices.SortStableFunc(found.NotCounted, func(a, b NotCounted) int { return cmp.Compare(a.Line, b.Line) })
	return found, nil
}

func instant(t int64) time.Time { return time.Unix(t, 0).UTC() }
