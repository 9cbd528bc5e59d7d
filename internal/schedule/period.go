package schedule

import (
	"errors"
	"time"
)

// Bounds of the duration of a cron period: not shorter than the resolution of cron, and not longer than a leap year.
const (
	MinDuration = time.Minute
	MaxDuration = 366 * 24 * time.Hour
)

// A Period is a set of instants, recurring or not. Get one from [Weekly],
// [Cron], [Dated] or [Calendar]. The zero value is empty.
type Period struct {
	name string
	form form
	zone *Zone

	// weekly: the days, seconds since midnight; end may be past midnight.
	days       daySet
	start, end int64

	// cron
	ticks    ticks
	duration int64

	// dated, in start and end above as instants.

	// spans, and the events of a calendar. Neither overlap.
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

// Dated returns the period [from, until). A zero from means since always, a zero until means forever; until must be later than from. A
// fraction of a second counts as the second that it lies in.
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

// Weekly returns the period that starts on the given days at start and ends at
// the next end: on the same day if end is later than start, else on the next.
func Weekly(name string, days Days, start, end TimeOfDay, zone *Zone) Period {
	p := Period{name: name, form: formWeekly, zone: zone, days: days.set(), start: int64(start), end: int64(end)}
	if p.end <= p.start {
		p.end += day
	}
	if p.days.all() && p.end-p.start == day {
		// It never ends. As a dated period, it does not make a search stop at every midnight.
		return Period{name: name, form: formDated, start: always, end: never}
	}
	return p
}

// Cron returns the period that starts at every tick of a cron expression of
// five fields and lasts for an elapsed time, which may exceed the distance of
// two ticks. See [ParseCron] for what is refused of the expression.
func Cron(name string, expression CronExpression, duration time.Duration, zone *Zone) (Period, error) {
	if duration < MinDuration || duration > MaxDuration {
		return Period{}, errors.New("must be from 1m to 8784h (366 days)")
	}
	p := Period{name: name, form: formCron, zone: zone, ticks: expression.ticks, duration: int64(duration / time.Second)}
	if p.unending() {
		// As a dated period, a search need not follow it from year to year.
		return Period{name: name, form: formDated, start: always, end: never}, nil
	}
	return p, nil
}

// unending returns whether a cron period never ends, even when clocks are set: none is set back by more than a day. A period of an hour
// that starts every hour ends where clocks are set back by half an hour, because two full hours are an hour and a half apart then.
func (p *Period) unending() bool {
	t := &p.ticks
	return t.everyHour() && p.duration >= t.gap || t.everyDay() && p.duration >= t.gap+day
}

// find returns whether the period covers t. If so, edge is the end of the
// covering interval, if not, the start of the next one or never. An edge is
// always later than t. Intervals that touch each other need not be merged here.
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

// findWeekly checks single days: around a transition of the zone, the wall-clock order of a few days need not be their order in time.
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

// on returns the interval of a weekly period that starts on a day. It is empty if it lies in a gap of the zone.
func (p *Period) on(d int64) (start, end int64) {
	return p.zone.Resolve(d*day + p.start), p.zone.Resolve(d*day + p.end)
}
