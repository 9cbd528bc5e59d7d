package ical

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Durations in seconds.
const (
	minute int64 = 60
	hour         = 60 * minute
	day          = 24 * hour
)

// longest bounds the length of an event, in seconds. The last year that DTEND can have is 9999.
const longest = 10_000 * 366 * day

// moment is a DATE or a DATE-TIME.
type moment struct {
	// wall is in seconds since 1970-01-01 00:00 on the clock of the zone.
	wall int64
	zone *schedule.Zone
	date bool
	// floating is true if the value has no time zone of its own. Dates are floating.
	floating bool
}

// at returns the instant of the moment.
func (m moment) at() int64 { return m.zone.Resolve(m.wall) }

// of converts a moment to the form of a series that starts at start. In a series of dates, it replaces a time with its date in its own time
// zone.
func (m moment) of(start moment) moment {
	if start.date && !m.date {
		m = moment{wall: midnight(m.wall), zone: start.zone, date: true, floating: true}
	}
	return m
}

// moment parses the value of a property that has a single value.
func (r *reader) moment(p *property) (moment, error) {
	return r.parseMoment(p, strings.TrimSpace(p.value))
}

// parseMoment parses one of the values of a property, and checks its parameters.
func (r *reader) parseMoment(p *property, value string) (moment, error) {
	kind, tzid, err := p.types()
	if err != nil {
		return moment{}, err
	}
	value = strings.TrimSpace(value)
	wall, date, utc, ok := parseStamp(value)
	m := moment{wall: wall, date: date, zone: r.zone, floating: true}
	switch {
	case !ok:
		return moment{}, p.errorf("%s is neither a date such as 20261224 nor a time such as 20261224T180000", quote(value))
	case kind == "DATE" && !date, kind == "DATE-TIME" && date:
		return moment{}, p.errorf("%s is not a %s", quote(value), kind)
	case kind != "" && kind != "DATE" && kind != "DATE-TIME" && kind != "PERIOD":
		return moment{}, p.errorf("has VALUE=%s, but must be a date or a time", quote(kind))
	case date && tzid != "":
		return moment{}, p.errorf("is a date, but has a TZID, which only times have")
	case tzid != "":
		m.floating = false
		if m.zone, err = r.named(p, tzid); err != nil {
			return moment{}, err
		}
	}
	if utc {
		if tzid != "" && !slices.Contains([]string{"UTC", "Etc/UTC", "GMT"}, m.zone.String()) {
			return moment{}, p.errorf("has the TZID %s, but Z at its end means UTC", quote(tzid))
		}
		m.zone, m.floating = r.utc, false
	}
	return m, nil
}

// parseStamp parses YYYYMMDD, YYYYMMDDTHHMMSS, and YYYYMMDDTHHMMSSZ. date is true for the first of these forms, and utc for the last. It
// returns false if the text has another form.
func parseStamp(s string) (wall int64, date, utc, ok bool) {
	switch {
	case len(s) == 8:
		date = true
	case len(s) == 15 && (s[8] == 'T' || s[8] == 't'):
	case len(s) == 16 && (s[8] == 'T' || s[8] == 't') && (s[15] == 'Z' || s[15] == 'z'):
		utc = true
	default:
		return 0, false, false, false
	}
	number := func(from, until int) (n int) {
		for _, c := range []byte(s[from:until]) {
			if c < '0' || c > '9' {
				return -1
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	year, month, dom := number(0, 4), number(4, 6), number(6, 8)
	t := time.Date(year, time.Month(month), dom, 0, 0, 0, 0, time.UTC)
	if year < 0 || t.Month() != time.Month(month) || t.Day() != dom {
		return 0, false, false, false
	}
	wall = t.Unix()
	if date {
		return wall, date, utc, true
	}
	h, m, sec := int64(number(9, 11)), int64(number(11, 13)), int64(number(13, 15))
	if h < 0 || h > 23 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return 0, false, false, false
	}
	// A leap second counts as the second before it, as in RFC 5545.
	return wall + h*hour + m*minute + min(sec, 59), date, utc, true
}

// length is the length of an event. It consists of wall, in seconds on the wall clock, where each day has 86400, followed by elapsed, in
// elapsed seconds.
type length struct {
	wall, elapsed int64
	// atLeast is the elapsed length of an occurrence that would otherwise not end after its start, because the wall clock skips that time.
	atLeast int64
}

// total returns the approximate length, in seconds.
func (l length) total() int64 { return max(l.wall+l.elapsed, l.atLeast) }

// end returns the end of an event that starts at start, as an instant.
func (l length) end(start moment) int64 {
	from := start.at()
	start.wall += l.wall
	if until := start.at() + l.elapsed; until > from {
		return until
	}
	return from + l.atLeast
}

var durationForm = regexp.MustCompile(`^([+-]?)P(?:(\d{1,9})W)?(?:(\d{1,9})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})S)?)?$`)

// parseLength parses a DURATION.
func parseLength(p *property, value string) (length, error) {
	m := durationForm.FindStringSubmatch(strings.ToUpper(value))
	if m == nil || strings.Join(m[2:], "") == "" {
		return length{}, p.errorf("%s is not a duration such as P1D or PT8H30M", quote(value))
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(m[i], 10, 64) // only digits, or empty, which means zero
		return n
	}
	l := length{wall: (number(2)*7 + number(3)) * day, elapsed: number(4)*hour + number(5)*minute + number(6)}
	if m[1] == "-" {
		return length{}, p.errorf("%s is negative", quote(value))
	}
	return l, l.check(p)
}

// check returns an error if no event can have this length.
func (l length) check(p *property) error {
	switch {
	case l.wall+l.elapsed == 0:
		return p.errorf("gives the event no duration, so it would close nothing")
	case l.wall+l.elapsed < 0:
		return p.errorf("is before the start of the event")
	case l.total() > longest:
		return p.errorf("ends the event after the year 9999")
	}
	return nil
}
