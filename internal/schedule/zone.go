package schedule

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
)

const (
	minute int64 = 60
	hour         = 60 * minute
	day          = 24 * hour

	// never means that there is no such instant.
	never int64 = math.MaxInt64
	// always is before all instants.
	always int64 = math.MinInt64

	// maxOffset is larger than any UTC offset in the IANA database.
	maxOffset = 16 * hour
)

// UTC offsets are tabulated between these years. Beyond them, the first and the last offset apply.
var (
	tableStart = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)
	tableEnd   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Zone is a time zone, tabulated for calculations in seconds. The zero value is invalid: call [LoadZone] for a zone of the IANA database,
// or [NewZone].
type Zone struct {
	name  string
	spans []offsetSpan
}

// offsetSpan is an interval [start, end) with one UTC offset.
type offsetSpan struct {
	start, end, offset int64
	// before is the offset of the previous span. For the first span, it is the span's own offset.
	before int64
}

// repeatEnd returns the end of the wall-clock times that repeat because the clock was set back at the start of the span. It is the start if
// the clock was not set back.
func (s *offsetSpan) repeatEnd() int64 { return s.start + max(0, s.before-s.offset) }

// gapEnd returns when the skipped times would have ended by the clock of the previous span. It is the start if the clock was not set
// forward.
func (s *offsetSpan) gapEnd() int64 { return s.start + max(0, s.offset-s.before) }

// zones maps each *time.Location of tz to a *Zone.
var zones sync.Map

// LoadZone returns the zone with an IANA name; the empty name is UTC. It refuses "Local", which depends on the machine. Zones are tabulated
// once per time zone database.
func LoadZone(name string) (*Zone, error) {
	if name == "" {
		name = "UTC"
	}
	if strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("time zone %q is not allowed, name an IANA time zone such as Europe/Oslo", name)
	}
	loc, err := tz.Load(name)
	if err != nil {
		return nil, err
	}
	if known, ok := zones.Load(loc); ok {
		return known.(*Zone), nil
	}
	known, _ := zones.LoadOrStore(loc, &Zone{name: loc.String(), spans: tabulate(loc)})
	return known.(*Zone), nil
}

// Offset is a UTC offset in seconds, positive to the east, and the instant at which it starts to apply, in seconds since 1970 in UTC.
type Offset struct {
	From, Seconds int64
}

// NewZone returns a zone that is not in the IANA database. The offset is before until the first of offsets applies. The offsets must be
// sorted, and none may exceed 16 hours in either direction.
func NewZone(name string, before int64, offsets ...Offset) (*Zone, error) {
	zone := &Zone{name: name, spans: []offsetSpan{{start: always, end: never, offset: before, before: before}}}
	for _, o := range append([]Offset{{always, before}}, offsets...) {
		last := &zone.spans[len(zone.spans)-1]
		switch {
		case o.Seconds < -maxOffset || o.Seconds > maxOffset:
			return nil, fmt.Errorf("has a UTC offset of %s, which is more than 16 hours", time.Duration(o.Seconds)*time.Second)
		case o.From < last.start:
			return nil, errors.New("has UTC offsets that are not sorted")
		case o.Seconds == last.offset:
		case o.From == last.start:
			return nil, errors.New("has two UTC offsets from one instant on")
		default:
			last.end = o.From
			zone.spans = append(zone.spans, offsetSpan{start: o.From, end: never, offset: o.Seconds, before: last.offset})
		}
	}
	return zone, nil
}

// String returns the name.
func (z *Zone) String() string { return z.name }

// tabulate returns the offsets of a location. It merges neighbors with the same offset, because some transitions change only the
// abbreviation.
func tabulate(loc *time.Location) []offsetSpan {
	var spans []offsetSpan
	for t := tableStart.In(loc); t.Before(tableEnd); {
		_, seconds := t.Zone()
		offset := int64(seconds)
		if n := len(spans); n == 0 || spans[n-1].offset != offset {
			before := offset
			if n > 0 {
				spans[n-1].end = t.Unix()
				before = spans[n-1].offset
			}
			spans = append(spans, offsetSpan{start: t.Unix(), end: never, offset: offset, before: before})
		}
		_, next := t.ZoneBounds()
		if next.IsZero() {
			break
		}
		if !next.After(t) {
			// ZoneBounds may not advance on the last day of a leap year, see https://go.dev/issue/81583.
			next = t.Add(time.Hour)
		}
		t = next
	}
	spans[0].start = always
	return spans
}

// at returns the index of the span that contains the instant t.
func (z *Zone) at(t int64) int {
	return sort.Search(len(z.spans)-1, func(i int) bool { return t < z.spans[i].end })
}

// offsets returns the smallest and the largest offset in use between two
// instants. They are equal except around a transition.
func (z *Zone) offsets(from, until int64) (low, high int64) {
	i := z.at(from)
	low, high = z.spans[i].offset, z.spans[i].offset
	for ; z.spans[i].end <= until; i++ {
		low = min(low, z.spans[i+1].offset)
		high = max(high, z.spans[i+1].offset)
	}
	return low, high
}

// Wall returns the wall-clock time at the instant t, in seconds since 1970-01-01 00:00 on the wall
// clock.
func (z *Zone) Wall(t int64) int64 { return t + z.spans[z.at(t)].offset }

// Resolve returns the instant of a wall-clock time, given in seconds since 1970-01-01 00:00 on the wall clock. Times that are skipped or
// occur twice are resolved as in RFC 5545, section 3.3.5.
func (z *Zone) Resolve(wall int64) int64 {
	i := z.at(wall - maxOffset)
	for ; ; i++ {
		t := wall - z.spans[i].offset
		if t < z.spans[i].start {
			// No earlier span reaches this far, and this span starts later: the time is in a gap.
			return wall - z.spans[i-1].offset
		}
		if t < z.spans[i].end {
			return t
		}
	}
}
