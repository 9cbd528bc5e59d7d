package ical

import "time"

// cursor is a day of the calendar with the fields that rules need.
type cursor struct {
	// day is the number of days since 1970-01-01.
	day                 int64
	year                int
	month               time.Month
	dayOfMonth, ofMonth int
	dayOfYear, ofYear   int
	weekday             time.Weekday
}

// firstOf returns the first day of a month, counted from 1970-01-01.
func firstOf(year int, month time.Month) int64 {
	return time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Unix() / day
}

func cursorAt(d int64) cursor {
	t := time.Unix(d*day, 0).UTC()
	c := cursor{day: d, dayOfYear: t.YearDay(), weekday: t.Weekday()}
	c.year, c.month, c.dayOfMonth = t.Date()
	c.ofMonth, c.ofYear = lengths[c.month], 365
	if c.year%4 == 0 && (c.year%100 != 0 || c.year%400 == 0) {
		c.ofYear = 366
		if c.month == time.February {
			c.ofMonth = 29
		}
	}
	return c
}

// lengths has the number of days of each month, without leap days.
var lengths = [...]int{1: 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// next advances the cursor by a day.
func (c *cursor) next() {
	if c.dayOfMonth == c.ofMonth {
		*c = cursorAt(c.day + 1)
		return
	}
	c.day++
	c.dayOfMonth++
	c.dayOfYear++
	c.weekday = (c.weekday + 1) % 7
}

// meets returns whether a day matches all parts of the rule. The ordinals of BYDAY count within the month or the year.
func (u *rule) meets(c *cursor) bool {
	switch {
	case u.months != 0 && u.months&(1<<c.month) == 0,
		u.monthDays.any && !u.monthDays.has(c.dayOfMonth, c.ofMonth),
		u.yearDays.any && !u.yearDays.has(c.dayOfYear, c.ofYear),
		u.weeks.any && !u.meetsWeek(c):
		return false
	case u.weekdays&(1<<c.weekday) != 0:
		return true
	case !u.hasNth:
		return u.weekdays == 0
	}
	n, of := c.dayOfYear, c.ofYear
	if u.frequency == monthly || u.months != 0 {
		n, of = c.dayOfMonth, c.ofMonth
	}
	before := (n - 1) / 7
	return u.nth[c.weekday].has(before+1, before+1+(of-n)/7)
}

// meetsWeek returns whether the week of a day is in BYWEEKNO. The first week of a year is the first with at least four days in it, so the
// fourth day of a week determines its year.
func (u *rule) meetsWeek(c *cursor) bool {
	fourth := cursorAt(u.weekStart(c.day) + 3)
	before := (fourth.dayOfYear - 1) / 7
	return u.weeks.has(before+1, before+1+(fourth.ofYear-fourth.dayOfYear)/7)
}

func (u *rule) weekStart(d int64) int64 {
	return d - int64(cursorAt(d).weekday-u.wkst+7)%7
}

// period returns the days [from, until) of the n-th period of a rule that starts on a day. n counts from 0.
func (u *rule) period(start *cursor, n int64) (from, until int64) {
	n *= u.interval
	switch u.frequency {
	case daily:
		return start.day + n, start.day + n + 1
	case weekly:
		from = u.weekStart(start.day) + 7*n
		return from, from + 7
	case monthly:
		month := start.month + time.Month(n)
		return firstOf(start.year, month), firstOf(start.year, month+1)
	default:
		year := start.year + int(n)
		return firstOf(year, 1), firstOf(year+1, 1)
	}
}

// first returns the number of a period that is not later than day d. If the rule has COUNT, it returns the first period, because all
// occurrences must be counted.
func (u *rule) first(start *cursor, d int64) int64 {
	if u.count > 0 || d <= start.day {
		return 0
	}
	c := cursorAt(d)
	n := d - start.day
	switch u.frequency {
	case daily:
	case weekly:
		n /= 7
	case monthly:
		n = int64(c.year-start.year)*12 + int64(c.month-start.month)
	default:
		n = int64(c.year - start.year)
	}
	return max(0, n/u.interval-1)
}

// walk yields the wall-clock times of a rule after start and up to until, in order. It may leave out times before from. It subtracts its
// work from effort, and returns false if effort is spent.
func (u *rule) walk(start, from, until int64, effort *int, yield func(wall int64) bool) bool {
	begin := cursorAt(midnight(start) / day)
	count := u.count
	var walls []int64
	for n := u.first(&begin, midnight(from)/day); ; n++ {
		low, high := u.period(&begin, n)
		if low*day > until {
			return true
		}
		if walls = u.walls(walls[:0], low, high, effort); *effort < 0 {
			return false
		}
		for i, wall := range walls {
			if wall <= start || u.position.any && !u.position.has(i+1, len(walls)) {
				continue
			}
			// The start is the first occurrence.
			if count--; count == 0 && u.count > 0 || wall > until || !yield(wall) {
				return true
			}
		}
	}
}

// walls appends the wall-clock times on the days [low, high), regardless of BYSETPOS. It returns nil if effort is spent.
func (u *rule) walls(walls []int64, low, high int64, effort *int) []int64 {
	*effort--
	for c := cursorAt(low); c.day < high; c.next() {
		if *effort--; !u.meets(&c) {
			continue
		}
		if *effort -= len(u.hours) * len(u.minutes) * len(u.seconds); *effort < 0 {
			return nil
		}
		for _, h := range u.hours {
			for _, m := range u.minutes {
				for _, s := range u.seconds {
					walls = append(walls, c.day*day+h+m+s)
				}
			}
		}
	}
	return walls
}

// midnight returns the start of the day of a wall-clock time.
func midnight(wall int64) int64 { return wall - ((wall%day)+day)%day }
