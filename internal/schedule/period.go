package schedule

import (
	"errors"
	"time"
)

// MinDuration and MaxDuration bound the duration of a cron period: at least the resolution of cron, and at most a leap year.
const (
	MinDuration = time.Minute
	MaxDuration = 366 * 24 * time.Hour
)

// Period is a set of instants, recurring or not. [Weekly], [Cron], [Dated] and [Calendar] return one. The zero value is empty.
type Period struct {
	name string
	form form
	zone *Zone

	// weekly: the days, and times in seconds since midnight. end may be on the next day.
	days       daySet
	start, end int64

	// cron
	ticks    ticks
	duration int64

	// dated: start and end, as instants

	// spans: the spans, and the events of a calendar. Both are sorted and do not overlap.
	spans  []span
	events []event
}

type form uint8

const (
	formEmpty form = iota
	formDated
	formWeekly
	formCron
	formSpans
)

// Name returns the name of the period.
func (p *Period) Name() string { return p.name }

// Named returns the same period under another name.
func (p Period) Named(name string) Period {
	p.name = name
	return p
}

// Dated returns the period [from, until). A zero from means no start, and a zero until means no end. Otherwise, until must be later than
// from. Fractions of a second are cut off.
func Dated(name string, from, until time.Time) (Period, error) {
	p := Period{name: name, form: formDated, start: always, end: never}
	if !from.IsZero() {
		p.start = from.Unix()
	}
	if !until.IsZero() {
		p.end = until.Unix()
	}
	if p.start >= p.end {
		return Period{}, errors.New("must be later than from")
	}
	return p, nil
}

// Weekly returns the period that starts on the given days at start and ends at the next end: on the same day if end is later than start,
// otherwise on the next day.
func Weekly(name string, days Days, start, end TimeOfDay, zone *Zone) Period {
	p := Period{name: name, form: formWeekly, zone: zone, days: days.set(), start: int64(start), end: int64(end)}
	if p.end <= p.start {
		p.end += day
	}
	if p.days.all() && p.end-p.start == day {
		// It never ends. Return a dated period, so that a search does not stop at every midnight.
		return Period{name: name, form: formDated, start: always, end: never}
	}
	return p
}

// Cron returns the period that starts at every tick of a cron expression of five fields and lasts for duration. This is an elapsed time
// that may exceed the distance between two ticks. Cron returns an error if the duration is out of bounds.
func Cron(name string, expression CronExpression, duration time.Duration, zone *Zone) (Period, error) {
	if duration < MinDuration || duration > MaxDuration {
		return Period{}, errors.New("must be from 1m to 8784h (366 days)")
	}
	p := Period{name: name, form: formCron, zone: zone, ticks: expression.ticks, duration: int64(duration / time.Second)}
	if p.unending() {
		// Return a dated period, so that a search does not step from year to year.
		return Period{name: name, form: formDated, start: always, end: never}, nil
	}
	return p, nil
}

// unending returns whether a cron period never ends, even when the clock is set back, by at most a day. A one-hour period that starts every
// hour does end when the clock is set back by half an hour, because two full hours are then an hour and a half apart.
func (p *Period) unending() bool {
	t := &p.ticks
	return t.everyHour() && p.duration >= t.gap || t.everyDay() && p.duration >= t.gap+day
}

// find returns whether the period covers t. If it does, edge is the end of the covering interval. Otherwise, edge is the start of the next
// interval, or never. An edge is always later than t. Intervals that touch are not necessarily merged.
func (p *Period) find(t int64) (covered bool, edge int64) {
	switch p.form {
	case formEmpty:
	case formDated:
		switch {
		case t < p.start:
			return false, p.start
		case t < p.end:
			return true, p.end
		}
	case formWeekly:
		return p.findWeekly(t)
	case formCron:
		return p.findCron(t)
	case formSpans:
		return p.findSpans(t)
	}
	return false, never
}

func (p *Period) findCron(t int64) (bool, int64) {
	tick := p.ticks.previous(p.zone, t)
	if tick == always || t >= tick+p.duration {
		return false, p.ticks.next(p.zone, t)
	}
	edge := tick + p.duration
	if p.ticks.gap <= p.duration {
		edge = max(edge, p.ticks.run(p.zone, tick))
	}
	return true, edge
}

// findWeekly is find for a weekly period. It checks each day near t, because around a transition of the zone, the order of days on the wall
// clock may differ from their order in time.
func (p *Period) findWeekly(t int64) (bool, int64) {
	reach := p.days.reach()
	low, high := p.zone.offsets(t-4*day, t+(reach+1)*day)
	edge := always
	first := floorDiv(t+high, day)
	for d := first; d >= first-3; d-- {
		if d*day+p.end-low <= t || d*day+p.start-high > t || !p.days.has(d) {
			continue
		}
		if start, end := p.on(d); start <= t && t < end {
			edge = max(edge, end)
		}
	}
	if edge != always {
		return true, edge
	}
	edge = never
	first = floorDiv(t+low, day)
	for d := first; d <= first+reach && d*day+p.start-high < edge; d++ {
		if !p.days.has(d) {
			continue
		}
		if start, end := p.on(d); start > t && start < end {
			edge = min(edge, start)
		}
	}
	return false, edge
}

// on returns the interval of a weekly period that starts on a day. The interval is empty if it is in a gap of the zone.
func (p *Period) on(d int64) (start, end int64) {
	return p.zone.Resolve(d*day + p.start), p.zone.Resolve(d*day + p.end)
}
