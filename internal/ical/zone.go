package ical

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// zones holds the zones of a VCALENDAR.
type zones struct {
	known map[string]*schedule.Zone
	// defined holds the VTIMEZONEs by TZID.
	defined map[string][]*component
}

func newZones(calendar *component) *zones {
	z := &zones{known: map[string]*schedule.Zone{}, defined: map[string][]*component{}}
	for _, c := range calendar.children {
		for _, id := range c.all("TZID") {
			if c.name != vtimezone {
				continue
			}
			z.defined[id.value] = append(z.defined[id.value], c)
			if text := id.text(); text != id.value {
				// A TZID is escaped in a VTIMEZONE, but not in a parameter.
				z.defined[text] = append(z.defined[text], c)
			}
		}
	}
	return z
}

// named returns the zone with a TZID: an IANA name, otherwise a Windows name, otherwise a VTIMEZONE of the calendar, otherwise an IANA name
// after a prefix. p is the property with the TZID.
func (r *reader) named(p *property, tzid string) (*schedule.Zone, error) {
	if zone := r.zones.known[tzid]; zone != nil {
		return zone, nil
	}
	zone, err := schedule.LoadZone(tzid)
	if err != nil {
		if name, ok := windows[tzid]; ok {
			zone, err = schedule.LoadZone(name)
		}
	}
	if err != nil && len(r.zones.defined[tzid]) == 0 {
		zone, err = r.prefixed(p, tzid)
	}
	if err != nil {
		zone, err = r.build(p, tzid)
	}
	if err == nil {
		r.zones.known[tzid] = zone
	}
	return zone, err
}

// prefixed returns the IANA zone whose name follows a prefix, as in /Europe/Vienna or /example.com/20260101/Europe/Vienna. It adds a
// warning about p.
func (r *reader) prefixed(p *property, tzid string) (*schedule.Zone, error) {
	name, more := strings.CutPrefix(tzid, "/")
	for more && name != "" {
		if zone, err := schedule.LoadZone(name); err == nil {
			r.warn(p, "has the TZID %s, which is read as %s", quote(tzid), quote(name))
			return zone, nil
		}
		_, name, more = strings.Cut(name, "/")
	}
	return nil, errors.New("unknown time zone")
}

// onset is the start of an observance: the instant, and the UTC offsets before and after it, in seconds.
type onset struct {
	at, before, after int64
	daylight          bool
}

// tableStart is the time when the tables of UTC offsets start: 1970-01-01 in UTC.
const tableStart = 0

// build tabulates the VTIMEZONE with a TZID. p is the property with the TZID.
func (r *reader) build(p *property, tzid string) (*schedule.Zone, error) {
	defined := r.zones.defined[tzid]
	if len(defined) == 0 {
		return nil, p.errorf("has the unknown TZID %s, and the calendar does not define it in a VTIMEZONE", quote(tzid))
	}
	for _, other := range defined[1:] {
		if !other.same(defined[0]) {
			return nil, other.errorf("has the same TZID %s as the VTIMEZONE in line %d, but different content", quote(tzid), defined[0].line)
		}
	}
	var onsets []onset
	for _, child := range defined[0].children {
		if child.name != "STANDARD" && child.name != "DAYLIGHT" {
			continue
		}
		more, err := r.observance(child)
		if err != nil {
			return nil, err
		}
		onsets = append(onsets, more...)
	}
	if len(onsets) == 0 {
		return nil, defined[0].errorf("has neither STANDARD nor DAYLIGHT")
	}
	onsets = sorted(onsets)
	offsets := make([]schedule.Offset, len(onsets))
	for i, o := range onsets {
		offsets[i] = schedule.Offset{From: o.at, Seconds: o.after}
	}
	zone, err := schedule.NewZone(tzid, onsets[0].before, offsets...)
	if err != nil {
		return nil, defined[0].errorf("%v", err)
	}
	return zone, nil
}

// sorted sorts onsets by time. In the zones of Exchange, STANDARD and DAYLIGHT begin at the same instant in 1601. Of such a pair before
// 1970, only standard time is kept.
func sorted(onsets []onset) []onset {
	rank := map[bool]int{true: 1}
	slices.SortFunc(onsets, func(a, b onset) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(rank[a.daylight], rank[b.daylight]), cmp.Compare(a.after, b.after))
	})
	return slices.CompactFunc(onsets, func(a, b onset) bool { return a.at == b.at && a.at < tableStart && a.daylight != b.daylight })
}

// observance returns the onsets of a STANDARD or DAYLIGHT component.
func (r *reader) observance(c *component) ([]onset, error) {
	before, err := offsetOf(c, "TZOFFSETFROM")
	if err != nil {
		return nil, err
	}
	after, err := offsetOf(c, "TZOFFSETTO")
	if err != nil {
		return nil, err
	}
	clock, err := schedule.NewZone("", before)
	if err != nil {
		return nil, c.errorf("%v", err)
	}
	// The times of an observance have the UTC offset that applies before it begins. They must not refer to a VTIMEZONE.
	inner := *r
	inner.zone, inner.zones = clock, newZones(&component{})
	start, err := inner.start(c)
	if err != nil {
		return nil, err
	}
	var onsets []onset
	err = inner.starts(&event{component: c}, start, tableStart, r.until+2*366*day, func(p *property, m moment, own *length) error {
		if m.date || !m.floating || own != nil {
			return p.errorf("must be a local time of the VTIMEZONE")
		}
		if r.left.onsets--; r.left.onsets < 0 {
			return p.errorf("has too many dates: the VTIMEZONEs up to this line have more than %d", maxOnsets)
		}
		onsets = append(onsets, onset{m.at(), before, after, c.name == "DAYLIGHT"})
		return nil
	})
	for _, p := range c.all("EXDATE") {
		return nil, p.errorf("is not supported in a VTIMEZONE")
	}
	return onsets, err
}

var offsetForm = regexp.MustCompile(`^([+-])(\d{2})([0-5]\d)([0-5]\d)?$`)

// offsetOf returns the UTC offset in a property, in seconds.
func offsetOf(c *component, name string) (int64, error) {
	p, err := c.one(name)
	if err != nil {
		return 0, err
	}
	if p == nil {
		return 0, c.errorf("has no %s", name)
	}
	m := offsetForm.FindStringSubmatch(strings.TrimSpace(p.value))
	if m == nil {
		return 0, p.errorf("%s is not a UTC offset such as +0100", quote(p.value))
	}
	number := func(i int) int64 {
		n, _ := strconv.ParseInt(m[i], 10, 64) // only digits, or empty, which means zero
		return n
	}
	seconds := number(2)*hour + number(3)*minute + number(4)
	if m[1] == "-" {
		seconds = -seconds
	}
	if max(seconds, -seconds) > 16*hour {
		return 0, p.errorf("is %s, which is more than 16 hours", time.Duration(seconds)*time.Second)
	}
	return seconds, nil
}
