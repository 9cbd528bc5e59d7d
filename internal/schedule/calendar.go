package schedule

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// CalendarEvent is an event of a calendar, in [Start, End). Fractions of a second are cut off.
type CalendarEvent struct {
	Start, End time.Time
	// Name is the name of the event. It need not be unique.
	Name string
}

// Calendar returns a period that covers an instant if one of the events does. The events may overlap and need not be sorted. An event that
// does not end after its start covers nothing.
func Calendar(name string, spans []CalendarEvent) Period {
	p := Period{name: name}
	spans = slices.Clone(spans)
	slices.SortStableFunc(spans, func(a, b CalendarEvent) int {
		return cmp.Or(cmp.Compare(a.Start.Unix(), b.Start.Unix()), cmp.Compare(b.End.Unix(), a.End.Unix()), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range spans {
		p.cover(span{s.Start.Unix(), s.End.Unix()}, s.Name)
	}
	p.spans, p.events = slices.Clone(p.spans), slices.Clone(p.events) // without spare capacity, because calendars are cached
	return p
}

// event is the interval in which decisions report the name of a calendar event.
type event struct {
	span
	name string
}

// cover adds an event that starts no earlier than the previous ones.
func (p *Period) cover(s span, name string) {
	last := len(p.events) - 1
	if s.from >= s.until || last >= 0 && s.until <= p.events[last].until {
		return
	}
	p.form = formSpans
	if last < 0 || s.from > p.events[last].until {
		p.spans = append(p.spans, s)
	}
	// Join events that touch, so that a search does not stop at each of them.
	p.spans[len(p.spans)-1].until = s.until
	if last >= 0 && s.from <= p.events[last].until {
		if name == p.events[last].name {
			p.events[last].until = s.until
			return
		}
		p.events[last].until = s.from
	}
	p.events = append(p.events, event{s, name})
}

// Event returns the name of the calendar event to report at an instant, and the end of that report. If several events cover the
// instant, it is the one that ends last, because users wait for that end. Another event may take over before then. It returns false if
// no event covers the instant, or if the period is not a calendar.
func (p *Period) Event(at time.Time) (name string, until time.Time, ok bool) {
	name, end := p.eventAt(at.Unix())
	if end == never {
		return "", time.Time{}, false
	}
	return name, instant(end), true
}

// eventAt is like Event for t in seconds. It returns never as until if no event covers t.
func (p *Period) eventAt(t int64) (name string, until int64) {
	i := sort.Search(len(p.events), func(i int) bool { return t < p.events[i].until })
	if i == len(p.events) || t < p.events[i].from {
		return "", never
	}
	return p.events[i].name, p.events[i].until
}

// findSpans is like find, for sorted spans that do not overlap.
func (p *Period) findSpans(t int64) (bool, int64) {
	i := sort.Search(len(p.spans), func(i int) bool { return t < p.spans[i].until })
	switch {
	case i == len(p.spans):
		return false, never
	case p.spans[i].from <= t:
		return true, p.spans[i].until
	}
	return false, p.spans[i].from
}
