package ical

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// event is a VEVENT or a VFREEBUSY with the properties that identify it and determine whether it counts.
type event struct {
	component *component
	zones     *zones
	line      int
	uid       string
	summary   string
	// start is DTSTART, nil if it is missing or invalid, see startErr.
	start    *moment
	startErr error
	// instance is the RECURRENCE-ID, nil if there is none. matched is true if a series has such an occurrence.
	instance *moment
	matched  bool
	sequence uint64
	// stamp is DTSTAMP, empty if it is missing.
	stamp string
	// discounted is the reason why the event does not count, empty if it does. superseded is true if the reason is another version of
	// the event.
	discounted string
	superseded bool
	// closesOnly is the reason why the event counts only in close periods, empty if it may count in open periods, too.
	closesOnly string
	// ambiguous is the error for open periods that select the event, nil if they may select it.
	ambiguous error
	// categories lists the numbers of the event's categories, see Text.categories.
	categories []int
	// occurrences are incomplete if err is set.
	occurrences []interval
	err         error
	// unread is true if the budget was spent before the event was read.
	unread bool
	// warnings are about parts of the event that may be mistakes. They do not prevent reading it.
	warnings Errors
}

// interval is the time [from, until), in seconds since 1970-01-01 in UTC.
type interval struct{ from, until int64 }

// identify reads the properties that identify an event and determine whether it counts. It returns the event even if some of them are
// invalid.
func (r *reader) identify(c *component) (*event, error) {
	e := &event{component: c, zones: r.zones, line: c.line}
	in := *r
	r, in.warnings = &in, &e.warnings
	var wrong Errors
	start, err := r.start(c)
	if e.startErr = err; err == nil {
		e.start = &start
	}
	for _, name := range []string{"UID", "SUMMARY", "RECURRENCE-ID", "SEQUENCE", "DTSTAMP"} {
		p, err := c.one(name)
		if err == nil && p != nil {
			err = r.read(e, p)
		}
		wrong.add(err)
	}
	if c.name == vfreebusy {
		e.summary = cmp.Or(e.summary, "busy")
	}
	wrong.add(r.weigh(e))
	return e, wrong.err()
}

func (r *reader) read(e *event, p *property) (err error) {
	switch p.name {
	case "UID":
		e.uid = strings.TrimSpace(p.text())
	case "SUMMARY":
		if e.summary = strings.TrimSpace(p.text()); r.name != nil {
			e.summary = strings.Clone(r.name(e.summary)) // does not keep a long summary in memory
		}
	case "RECURRENCE-ID":
		return r.readInstance(e, p)
	case "SEQUENCE":
		if e.sequence, err = strconv.ParseUint(strings.TrimSpace(p.value), 10, 32); err != nil {
			return p.errorf("%s is not a number from 0", quote(p.value))
		}
	case "DTSTAMP":
		e.stamp = strings.ToUpper(strings.TrimSpace(p.value))
		if _, _, _, ok := parseStamp(e.stamp); !ok {
			return p.errorf("%s is not a time such as 20261224T180000Z", quote(p.value))
		}
	}
	return nil
}

func (r *reader) readInstance(e *event, p *property) error {
	scope, err := p.param("RANGE")
	if err != nil {
		return err
	}
	if scope != "" {
		return p.errorf("has RANGE=%s: changing more than one occurrence is not supported", quote(scope))
	}
	m, err := r.at(e.start).moment(p)
	e.instance = &m
	return err
}

// at returns a reader for the other values of an event. If DTSTART has a time zone, values without a time zone are in that zone.
func (r *reader) at(start *moment) *reader {
	if start == nil || start.floating {
		return r
	}
	in := *r
	in.zone = start.zone
	return &in
}

// weigh determines from STATUS and TRANSP whether an event counts.
func (r *reader) weigh(e *event) error {
	status, err := e.word("STATUS", "CONFIRMED", "TENTATIVE", "CANCELLED")
	if err != nil {
		return err
	}
	transparency, err := e.word("TRANSP", "OPAQUE", "TRANSPARENT")
	if err != nil {
		return err
	}
	switch {
	case status == "CANCELLED":
		e.discounted = Cancelled
	case transparency == "TRANSPARENT":
		e.discounted = Transparent
	}
	return nil
}

// word returns the value of a property that must be one of words. If the property is missing, it returns the first of them.
func (e *event) word(name string, words ...string) (string, error) {
	p, err := e.component.one(name)
	if err != nil || p == nil {
		return words[0], err
	}
	if word := strings.ToUpper(strings.TrimSpace(p.value)); slices.Contains(words, word) {
		return word, nil
	}
	return "", p.errorf("%s is not one of %s", quote(p.value), strings.Join(words, ", "))
}

// length returns the length of an event that starts at start, as specified by DTEND or DURATION.
func (r *reader) length(c *component, start moment) (length, error) {
	end, err := c.one("DTEND")
	if err != nil {
		return length{}, err
	}
	duration, err := c.one("DURATION")
	if err != nil {
		return length{}, err
	}
	switch {
	case end != nil && duration != nil:
		return length{}, duration.errorf("must not be combined with DTEND (line %d)", end.line)
	case end != nil:
		return r.lengthUntil(end, start, strings.TrimSpace(end.value))
	case duration != nil:
		l, err := parseLength(duration, strings.TrimSpace(duration.value))
		if err == nil && start.date && l.elapsed > 0 {
			err = duration.errorf("%s is not a number of days, but the event starts with a date", quote(duration.value))
		}
		return l, err
	case start.date:
		return length{wall: day}, nil
	}
	return length{}, c.errorf("has neither DTEND nor DURATION: an event without a duration closes nothing")
}

// lengthUntil returns the length of an event that starts at start and ends at value, which is a value of p.
func (r *reader) lengthUntil(p *property, start moment, value string) (length, error) {
	end, err := r.parseMoment(p, value)
	if err != nil {
		return length{}, err
	}
	var l length
	switch {
	case end.date != start.date:
		return l, p.errorf("and the start of the event must both be dates or both be times")
	case end.date && end.wall == start.wall:
		r.warn(p, "is the day of DTSTART: the event lasts that day")
		l.wall = day
	case end.date:
		l.wall = end.wall - start.wall
	case end.zone == start.zone && end.at() > start.at():
		l.wall, l.atLeast = end.wall-start.wall, end.at()-start.at()
	default:
		l.elapsed = end.at() - start.at()
	}
	return l, l.check(p)
}
