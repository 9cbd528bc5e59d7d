package ical

import "strings"

// The budget for one text. Using it up takes less than a second.
const (
	// effort bounds the number of days that are evaluated for its rules.
	effort = 10_000_000
	// maxOnsets bounds the changes of UTC offsets in its VTIMEZONEs.
	maxOnsets = 100_000
)

// left is the remaining budget of a text.
type left struct{ days, onsets, occurrences int }

// start returns the value of DTSTART.
func (r *reader) start(c *component) (moment, error) {
	p, err := c.one("DTSTART")
	if err != nil {
		return moment{}, err
	}
	if p == nil {
		return moment{}, c.errorf("has no DTSTART")
	}
	return r.moment(p)
}

// starts calls add for DTSTART, for all occurrences of RRULE that may lie between two instants, and for RDATE. add receives the property,
// the start of the occurrence, and its length, which is nil for the length of the event.
func (r *reader) starts(e *event, start moment, from, until int64, add func(*property, moment, *length) error) error {
	c := e.component
	if err := add(c.all("DTSTART")[0], start, nil); err != nil {
		return err
	}
	if e.instance != nil {
		for _, name := range []string{"RRULE", "RDATE"} {
			for _, p := range c.all(name) {
				r.warn(p, "is ignored, because an event with a RECURRENCE-ID is a single occurrence")
			}
		}
		return nil
	}
	for _, p := range c.all("EXRULE") {
		return p.errorf("is not supported: RFC 5545 removed this property")
	}
	p, err := c.one("RRULE")
	if err != nil {
		return err
	}
	if p != nil {
		if err := r.follow(p, start, from, until, add); err != nil {
			return err
		}
	}
	for _, p := range c.all("RDATE") {
		if err := r.addDates(p, start, add); err != nil {
			return err
		}
	}
	return nil
}

// follow calls add for the occurrences of an RRULE after its start.
func (r *reader) follow(p *property, start moment, from, until int64, add func(*property, moment, *length) error) error {
	u, err := r.parseRule(p, start)
	if err != nil {
		return err
	}
	// A wall clock differs from UTC by less than a day, and may be set forward or back.
	from, until = from-2*day, until+2*day
	if u.until != nil {
		until = min(until, u.until.wall+2*day)
	}
	var failed error
	if !u.walk(start.wall, from, until, &r.left.days, func(wall int64) bool {
		m := start
		m.wall = wall
		if u.until == nil || !m.after(*u.until) {
			failed = add(p, m, nil)
		}
		return failed == nil
	}) {
		return p.errorf("takes too long to evaluate: the rules up to this line visit more than %d days", effort)
	}
	return failed
}

// after returns whether a moment is after UNTIL. If UNTIL has no time zone, it is in the time zone of the event.
func (m moment) after(until moment) bool {
	if until.floating {
		return m.wall > until.wall
	}
	return m.at() > until.at()
}

// addDates calls add for the values of an RDATE.
func (r *reader) addDates(p *property, start moment, add func(*property, moment, *length) error) error {
	kind, _, err := p.types()
	if err != nil {
		return err
	}
	for value := range strings.SplitSeq(strings.TrimSpace(p.value), ",") {
		value, end, isPeriod := strings.Cut(value, "/")
		if isPeriod != (kind == "PERIOD") {
			return p.errorf("%s must have VALUE=PERIOD and the form start/end", quote(p.value))
		}
		m, err := r.parseMoment(p, value)
		switch {
		case err != nil:
			return err
		case m.date != start.date:
			return p.errorf("and DTSTART must both be dates or both be times")
		}
		var own *length
		if isPeriod {
			l, err := r.lengthOfPeriod(p, m, end)
			if err != nil {
				return err
			}
			own = &l
		}
		if err := add(p, m, own); err != nil {
			return err
		}
	}
	return nil
}

// lengthOfPeriod parses the end of a PERIOD: a time or a duration.
func (r *reader) lengthOfPeriod(p *property, start moment, end string) (length, error) {
	if strings.ContainsAny(end, "Pp") {
		return parseLength(p, end)
	}
	return r.lengthUntil(p, start, end)
}

// exclusions holds the occurrences that are left out of a series, by instant or by day.
type exclusions struct {
	instants, days map[int64]*exclusion
	all            []*exclusion
}

// exclusion is a value of EXDATE or a RECURRENCE-ID that excludes an occurrence.
type exclusion struct {
	at int64
	// by is the EXDATE, and value is its value. instance is the event with the RECURRENCE-ID. matched is true if the series has such an
	// occurrence.
	by       *property
	value    string
	instance *event
	matched  bool
}

func newExclusions() *exclusions {
	return &exclusions{instants: map[int64]*exclusion{}, days: map[int64]*exclusion{}}
}

// add excludes a moment from the series that starts at start. The first exclusion of a moment counts.
func (x *exclusions) add(m, start moment, e *exclusion) {
	m = m.of(start)
	in, key := x.instants, m.at()
	if e.at = key; m.date {
		in, key = x.days, m.wall
	}
	if in[key] == nil {
		in[key] = e
		x.all = append(x.all, e)
	}
}

// has returns whether the occurrence m of an event is excluded, and marks the matching exclusions. Days are compared in the time zone of the
// event.
func (x *exclusions) has(m, event moment) bool {
	if len(x.all) == 0 {
		return false
	}
	wall := m.wall
	if m.zone != event.zone {
		wall = event.zone.Wall(m.at())
	}
	found := false
	for _, e := range []*exclusion{x.instants[m.at()], x.days[midnight(wall)]} {
		if e == nil {
			continue
		}
		if found, e.matched = true, true; e.instance != nil {
			e.instance.matched = true
		}
	}
	return found
}

// warnOfUnmatched warns about each EXDATE that excludes nothing and is in the interval that is read.
func (r *reader) warnOfUnmatched(x *exclusions) {
	for _, e := range x.all {
		if e.by != nil && !e.matched && e.at >= r.from && e.at < r.until {
			r.warn(e.by, "%s is not an occurrence of the event", quote(e.value))
		}
	}
}

// occur finds the occurrences of an event. instances are the events with the same UID that replace single occurrences.
func (r *reader) occur(e *event, instances []*event) error {
	if e.startErr != nil && e.component.name != vfreebusy {
		return e.startErr
	}
	if r.left.occurrences < 0 || r.left.days < 0 || r.left.onsets < 0 {
		e.unread = true
		return e.component.errorf("was not read: the events up to this line take too long to evaluate, or have more than %d occurrences", MaxOccurrences)
	}
	if e.component.name == vfreebusy {
		return r.busy(e)
	}
	start := *e.start
	r = r.at(&start)
	usual, err := r.length(e.component, start)
	if err != nil {
		return err
	}
	except := newExclusions()
	for _, instance := range instances {
		except.add(*instance.instance, start, &exclusion{instance: instance})
	}
	if err := r.exclude(e, start, except); err != nil {
		return err
	}
	err = r.starts(e, start, r.from-usual.total(), r.until, func(p *property, m moment, own *length) error {
		l := usual
		if own != nil {
			l = *own
		}
		if except.has(m, start) {
			return nil
		}
		return r.add(e, p, m.at(), l.end(m))
	})
	if err == nil {
		r.warnOfUnmatched(except)
	}
	return err
}

// exclude adds the EXDATEs of an event to except.
func (r *reader) exclude(e *event, start moment, except *exclusions) error {
	for _, p := range e.component.all("EXDATE") {
		if e.instance != nil {
			r.warn(p, "is ignored, because an event with a RECURRENCE-ID is a single occurrence")
			continue
		}
		for value := range strings.SplitSeq(strings.TrimSpace(p.value), ",") {
			m, err := r.parseMoment(p, value)
			if err != nil {
				return err
			}
			except.add(m, start, &exclusion{by: p, value: value})
		}
	}
	return nil
}

// add adds an occurrence, unless it is outside the interval that is read.
func (r *reader) add(e *event, p *property, from, until int64) error {
	// An occurrence on a day that its time zone skips has no duration.
	if from >= until || until <= r.from || from >= r.until {
		return nil
	}
	if r.left.occurrences--; r.left.occurrences < 0 {
		e.occurrences = nil
		return p.errorf("has more than %d occurrences up to %s", MaxOccurrences, instant(r.until).Format("2006-01-02"))
	}
	e.occurrences = append(e.occurrences, interval{from, until})
	return nil
}

// busy adds the busy times of a VFREEBUSY as occurrences.
func (r *reader) busy(e *event) error {
	for _, p := range e.component.all("FREEBUSY") {
		kind, err := p.param("FBTYPE")
		if err != nil {
			return err
		}
		if strings.EqualFold(kind, "FREE") {
			continue
		}
		for value := range strings.SplitSeq(strings.TrimSpace(p.value), ",") {
			value, end, ok := strings.Cut(value, "/")
			if !ok {
				return p.errorf("%s must have the form start/end", quote(p.value))
			}
			m, err := r.parseMoment(p, value)
			if err != nil {
				return err
			}
			l, err := r.lengthOfPeriod(p, m, strings.TrimSpace(end))
			if err != nil {
				return err
			}
			if err := r.add(e, p, m.at(), l.end(m)); err != nil {
				return err
			}
		}
	}
	return nil
}
