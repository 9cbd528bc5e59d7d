package schedule

import "time"

// WeekOfMonth is the place of a day among the days of its name in a month.
type WeekOfMonth uint8

// The weeks of a month do not begin on a day of the week: First is the days 1 to 7, Fourth
// the days 22 to 28, Fifth the rest, and Last the last seven. So Last is Fourth or Fifth.
const (
	First WeekOfMonth = iota
	Second
	Third
	Fourth
	Fifth
	Last
)

// Days are those on which a weekly period starts. At most one of Weeks, OfMonth, WorkdaysOfMonth
// and EveryWeeks is set.
type Days struct {
	// Weekdays are the days of the week, all seven if empty.
	Weekdays []time.Weekday
	// Weeks are those of the month on the wall clock, all if empty.
	Weeks []WeekOfMonth
	// OfMonth are days of the month from 1 to 31, or from the end, -1 to -31.
	OfMonth []int
	// WorkdaysOfMonth count the days from Monday to Friday in a month, from 1 to 23, or from
	// the end, -1 to -23.
	WorkdaysOfMonth []int
	// EveryWeeks is the distance of the weeks that count, from that of Anchor, in both
	// directions. A week begins on Monday.
	EveryWeeks int
	// Anchor is a day counted from 1970-01-01.
	Anchor int64
}

// DayOf returns the day of t in its location, counted from 1970-01-01.
func DayOf(t time.Time) int64 {
	year, month, date := t.Date()
	return floorDiv(time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Unix(), day)
}

// MaxEveryWeeks bounds Days.EveryWeeks, and with it how far ahead the next start is searched.
const MaxEveryWeeks = 26

// daySet has days as bit sets.
type daySet struct {
	weekdays, weeks uint8
	month, workdays numbers
	// every is the distance of two weeks that count, 0 or 1 if all do, and week the number
	// of one of them.
	every, week int64
}

// numbers are those of days in a month, counted from its start and from its end.
type numbers struct {
	first, last uint32
}

const (
	// everyDay is all days of the week.
	everyDay uint8 = 1<<7 - 1
	// everyWeek is all weeks of a month.
	everyWeek uint8 = 1<<Last - 1
)

func (days Days) set() (s daySet) {
	for _, d := range days.Weekdays {
		s.weekdays |= 1 << d
	}
	for _, w := range days.Weeks {
		s.weeks |= 1 << w
	}
	if s.weekdays == 0 {
		s.weekdays = everyDay
	}
	const fourAndLast = 1<<First | 1<<Second | 1<<Third | 1<<Fourth | 1<<Last
	if s.weeks == 0 || s.weeks&everyWeek == everyWeek || s.weeks&fourAndLast == fourAndLast {
		s.weeks = everyWeek
	}
	s.month, s.workdays = numbersOf(days.OfMonth), numbersOf(days.WorkdaysOfMonth)
	if s.month.first == 1<<32-2 || s.month.last == 1<<32-2 {
		s.month = numbers{}
	}
	if days.EveryWeeks > 1 {
		s.every, s.week = int64(days.EveryWeeks), weekNumber(days.Anchor)
	}
	return s
}

func numbersOf(list []int) (n numbers) {
	for _, number := range list {
		if number > 0 {
			n.first |= 1 << number
		} else {
			n.last |= 1 << -number
		}
	}
	return n
}

// has returns whether a number from the start or one from the end is there.
func (n numbers) has(first, last int) bool { return n.first&(1<<first) != 0 || n.last&(1<<last) != 0 }

func (n numbers) none() bool { return n == numbers{} }

// weekNumber counts the Mondays from 1970-01-05, a day 4, on.
func weekNumber(d int64) int64 { return floorDiv(d-4, 7) }

// all returns whether the set has all days.
func (s daySet) all() bool { return s == daySet{weekdays: everyDay, weeks: everyWeek} }

// has returns whether a day counted from 1970-01-01 is in the set.
func (s daySet) has(d int64) bool {
	if s.weekdays&(1<<weekday(d)) == 0 {
		return false
	}
	switch {
	case s.weeks != everyWeek:
		date := civil(d)
		return s.weeks&(1<<((date.day-1)/7)) != 0 || s.weeks&(1<<Last) != 0 && date.day > date.daysIn()-7
	case !s.month.none():
		date := civil(d)
		return s.month.has(date.day, date.daysIn()-date.day+1)
	case !s.workdays.none():
		if w := weekday(d); w == time.Sunday || w == time.Saturday {
			return false
		}
		date := civil(d)
		before, after := date.day-1, date.daysIn()-date.day
		return s.workdays.has(workdays(d-int64(before), d), workdays(d, d+int64(after)))
	case s.every > 1:
		weeks := weekNumber(d) - s.week
		return weeks == floorDiv(weeks, s.every)*s.every
	}
	return true
}

// workdays returns how many of the days from first to last are from Monday to Friday.
func workdays(first, last int64) int {
	until := func(d int64) int64 { // from Monday, 1970-01-05, until before d
		days := d - 4
		weeks := floorDiv(days, 7)
		return weeks*5 + min(days-weeks*7, 5)
	}
	return int(until(last+1) - until(first))
}

// reach is how many days ahead the next start is searched: three times the longest distance of
// two days of the set, because gaps of the zone may swallow a few.
func (s daySet) reach() int64 {
	switch {
	case s.weeks == 1<<Fifth:
		return 3*119 + 1
	case s.weeks != everyWeek:
		return 3*35 + 1
	case !s.month.none():
		return 3*62 + 1 // from a 31st to the next
	case s.workdays.first|s.workdays.last == 1<<23: // a month has 20 to 23 workdays
		return 3*275 + 1
	case !s.workdays.none():
		return 3*91 + 1 // from a 22nd workday to the next
	case s.every > 1:
		return 3*7*(s.every+1) + 1
	}
	return 15
}
