package schedule_test

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// wallClock maps the minutes of a zone's wall clock, as if it were UTC, to the
// minutes at which it shows them. It was watched for every minute of a while.
type wallClock struct {
	first    int64
	instants []int64
	// again has the minutes at which it showed what it had shown before.
	again map[int64]int64
}

const unseen = -1 << 62

// watch evaluates the wall clock at every minute of [from, until).
func watch(loc *time.Location, from, until int64) *wallClock {
	const margin = 24 * 60
	c := &wallClock{first: from - margin, instants: make([]int64, until-from+2*margin), again: map[int64]int64{}}
	for i := range c.instants {
		c.instants[i] = unseen
	}
	shown := make([]int64, until-from)
	for m := from; m < until; m++ {
		at := time.Unix(m*60, 0).In(loc)
		year, month, day := at.Date()
		wall := time.Date(year, month, day, at.Hour(), at.Minute(), 0, 0, time.UTC).Unix() / 60
		shown[m-from] = wall
		if c.at(wall) == unseen {
			c.instants[wall-c.first] = m
		} else {
			c.again[m] = wall
		}
	}
	for i := 1; i < len(shown); i++ {
		// A time that the clock jumped over is read with the offset before the jump.
		before := from + int64(i) - 1
		for wall := shown[i-1] + 1; wall < shown[i]; wall++ {
			if c.at(wall) == unseen {
				c.instants[wall-c.first] = wall - (shown[i-1] - before)
			}
		}
	}
	return c
}

func (c *wallClock) at(wall int64) int64 {
	if i := wall - c.first; i >= 0 && i < int64(len(c.instants)) {
		return c.instants[i]
	}
	return unseen
}

// timeline counts how many intervals begin less how many end at each minute
// from first on.
type timeline struct {
	first int64
	edges []int
}

func (l *timeline) mark(from, until int64) {
	last := l.first + int64(len(l.edges)) - 1
	from, until = min(max(from, l.first), last), min(max(until, l.first), last)
	if from < until {
		l.edges[from-l.first]++
		l.edges[until-l.first]--
	}
}

// inside says of every minute from first on whether an interval covers it.
func (l *timeline) inside() []bool {
	inside, depth := make([]bool, len(l.edges)), 0
	for i, edge := range l.edges {
		depth += edge
		inside[i] = depth > 0
	}
	return inside
}

// mark marks the minutes that the period covers.
func (p periodSpec) mark(l *timeline, clock *wallClock) {
	if p.schedule == "" && p.start == "" {
		l.mark(p.from.Unix()/60, p.until.Unix()/60)
		return
	}
	if p.schedule != "" {
		p.markCron(l, clock)
		return
	}
	fires := weeklyMatcher(p)
	length := int64(minutesOf(p.end) - minutesOf(p.start))
	if length <= 0 {
		length += 24 * 60
	}
	for i, from := range clock.instants {
		wall := clock.first + int64(i)
		if from == unseen || !fires(time.Unix(wall*60, 0).UTC()) {
			continue
		}
		if until := clock.at(wall + length); until != unseen {
			l.mark(from, until)
		}
	}
}

func (p periodSpec) markCron(l *timeline, clock *wallClock) {
	length := int64(p.duration / time.Minute)
	if everyHour(p.schedule) && lasts(p.schedule, length) {
		l.mark(l.first, l.first+int64(len(l.edges)))
		return
	}
	fires := cronMatcher(p.schedule)
	tick := func(wall, at int64) {
		if fires(time.Unix(wall*60, 0).UTC()) {
			l.mark(at, at+length)
		}
	}
	for i, at := range clock.instants {
		if at != unseen {
			tick(clock.first+int64(i), at)
		}
	}
	if doubles(p.schedule) {
		for at, wall := range clock.again {
			tick(wall, at)
		}
	}
}

// everyHour returns whether a cron fires alike in all hours of all days.
func everyHour(expression string) bool {
	f := strings.Fields(expression)
	full := func(field string, low, high int) bool {
		matches := cronField(field, low, high)
		return !slices.Contains(matches[low:high+1], false)
	}
	return doubles(expression) && full(f[1], 0, 23) && full(f[2], 1, 31) && full(f[3], 1, 12) && full(f[4], 0, 6)
}

// doubles returns whether a cron fires in both occurrences of an hour.
func doubles(expression string) bool {
	return strings.ContainsAny(strings.Fields(expression)[1][:1], "*?")
}

// lasts returns whether ticks of an ordinary hour, of a length each, leave no minute
// of the next hour out.
func lasts(expression string, length int64) bool {
	l := &timeline{edges: make([]int, 2*60+1)}
	for m, fires := range cronField(strings.Fields(expression)[0], 0, 59) {
		if fires {
			l.mark(int64(m), int64(m)+length)
			l.mark(int64(m)+60, int64(m)+60+length)
		}
	}
	return !slices.Contains(l.inside()[60:120], false)
}

func weeklyMatcher(p periodSpec) func(time.Time) bool {
	start := minutesOf(p.start)
	return func(t time.Time) bool {
		return t.Hour()*60+t.Minute() == start && (len(p.days) == 0 || slices.Contains(p.days, t.Weekday())) && isInWeek(t, p.weeks) && p.isOn(t)
	}
}

// isInWeek counts the days of the same name in the month of a day, up to it and after it.
func isInWeek(t time.Time, weeks []schedule.WeekOfMonth) bool {
	place := 0
	for d := t; d.Month() == t.Month(); d = d.AddDate(0, 0, -7) {
		place++
	}
	isLast := t.AddDate(0, 0, 7).Month() != t.Month()
	return len(weeks) == 0 || slices.ContainsFunc(weeks, func(w schedule.WeekOfMonth) bool {
		return w == schedule.Last && isLast || w != schedule.Last && place == int(w)+1
	})
}

// isOn returns whether a day is among the days of the month, the workdays and the weeks of a period. It lists the days of the month.
func (p periodSpec) isOn(t time.Time) bool {
	today := time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
	var days, workdays []time.Time
	for d := today.AddDate(0, 0, 1-t.Day()); d.Month() == t.Month(); d = d.AddDate(0, 0, 1) {
		days = append(days, d)
		if d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			workdays = append(workdays, d)
		}
	}
	counts := func(numbers []int, list []time.Time) bool {
		return len(numbers) == 0 || slices.ContainsFunc(numbers, func(n int) bool {
			if n < 0 {
				n += len(list) + 1
			}
			return n >= 1 && n <= len(list) && list[n-1].Equal(today)
		})
	}
	monday := func(d time.Time) time.Time {
		for d.Weekday() != time.Monday {
			d = d.AddDate(0, 0, -1)
		}
		return d
	}
	weeks := int(monday(today).Unix()-monday(p.anchor).Unix()) / (7 * 24 * 60 * 60) // Sub is limited to 292 years
	return counts(p.daysOfMonth, days) && counts(p.workdays, workdays) && (p.everyWeeks == 0 || weeks%p.everyWeeks == 0)
}

func minutesOf(s string) int {
	hours, minutes, _ := strings.Cut(s, ":")
	return number(hours)*60 + number(minutes)
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// cronMatcher reads the text of an expression, independently of any parser.
func cronMatcher(expression string) func(time.Time) bool {
	f := strings.Fields(expression)
	minutes, hours := cronField(f[0], 0, 59), cronField(f[1], 0, 23)
	days, months, weekdays := cronField(f[2], 1, 31), cronField(f[3], 1, 12), cronField(f[4], 0, 6)
	either := !isStar(f[2]) && !isStar(f[4])
	return func(t time.Time) bool {
		if !minutes[t.Minute()] || !hours[t.Hour()] || !months[int(t.Month())] {
			return false
		}
		if either {
			return days[t.Day()] || weekdays[int(t.Weekday())]
		}
		return days[t.Day()] && weekdays[int(t.Weekday())]
	}
}

func isStar(field string) bool { return slices.Contains([]string{"*", "?", "*/1"}, field) }

func cronField(field string, low, high int) (matches [60]bool) {
	for part := range strings.SplitSeq(field, ",") {
		bounds, step, stepped := strings.Cut(part, "/")
		first, last, ranged := strings.Cut(bounds, "-")
		from, until, by := number(first), number(first), 1
		switch {
		case first == "*" || first == "?":
			from, until = low, high
		case ranged:
			until = number(last)
		case stepped:
			until = high
		}
		if stepped {
			by = number(step)
		}
		for n := from; n <= until; n += by {
			matches[n] = true
		}
	}
	return matches
}

// verdict is what the decision table says of a minute.
type verdict struct {
	state  schedule.State
	reason schedule.Reason
	// by is the name of an exception that decides, and of nothing else.
	by string
}

// table is the decision table of the design, spelled out. The function inside
// says whether one of some periods covers the minute in question, excepted is
// what an exception says of it, if it does.
func (s planSpec) table(at time.Time, inside func([]periodSpec) bool, excepted *verdict) verdict {
	requested := func(r [2]time.Time) bool { return !at.Before(r[0]) && at.Before(r[1]) }
	switch {
	case requested(s.close):
		return verdict{state: schedule.Closed, reason: schedule.CloseRequested}
	case inside(s.hard):
		return verdict{state: schedule.Closed, reason: schedule.ClosePeriod}
	case requested(s.open):
		return verdict{state: schedule.Opened, reason: schedule.OpenRequested}
	case !s.notBefore.IsZero() && at.Before(s.notBefore):
		return verdict{state: schedule.Closed, reason: schedule.NotYetActive}
	case !s.notAfter.IsZero() && !at.Before(s.notAfter):
		return verdict{state: schedule.Closed, reason: schedule.Expired}
	case excepted != nil:
		return *excepted
	case inside(s.soft):
		return verdict{state: schedule.Closed, reason: schedule.ClosePeriod}
	case inside(s.windows):
		return verdict{state: schedule.Opened, reason: schedule.OpenPeriod}
	case !s.opened && len(s.windows) > 0:
		return verdict{state: schedule.Closed, reason: schedule.OutsideOpenPeriods}
	case s.opened && len(s.soft)+len(s.hard) > 0:
		return verdict{state: schedule.Opened, reason: schedule.OutsideClosePeriods}
	case s.opened:
		return verdict{state: schedule.Opened, reason: schedule.Default}
	}
	return verdict{state: schedule.Closed, reason: schedule.Default}
}
