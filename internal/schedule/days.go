package schedule

import "time"

// WeekOfMonth is the occurrence of a weekday in a month.
type WeekOfMonth uint8

// The weeks of a month are counted from its first day: First is days 1 to 7, Fourth is days 22 to 28, and Fifth is the remaining days. Last
// is the last seven days, which overlap with Fourth and Fifth.
const (
	First WeekOfMonth = iota
	Second
	Third
	Fourth
	Fifth
	Last
)

// Days selects the days on which a weekly period starts. At most one of Weeks, OfMonth, WorkdaysOfMonth
// and EveryWeeks is set.
type Days struct {
	// Weekdays are the days of the week, all seven if empty.
	Weekdays []time.Weekday
	// Weeks are the weeks of the month on the wall clock, all if empty.
	Weeks []WeekOfMonth
	// OfMonth are days of the month from 1 to 31, or -1 to -31 counted from the end.
	OfMonth []int
	// WorkdaysOfMonth are workdays of the month (Monday to Friday) from 1 to 23, or -1 to -23 counted from the end.
	WorkdaysOfMonth []int
	// EveryWeeks is the number of weeks from one selected week to the next, counted from the week of Anchor in both directions. Weeks begin
	// on Monday.
	EveryWeeks int
	// Anchor is a day counted from 1970-01-01.
	Anchor int64
}

// DayOf returns the day of t in its location, counted from 1970-01-01.
func DayOf(t time.Time) int64 {
	year, month, date := t.Date()
	return floorDiv(time.Date(year, month, date, 0, 0, 0, 0, time.UTC).Unix(), day)
}

// MaxEveryWeeks bounds Days.EveryWeeks, and thereby the search for the next start.
const MaxEveryWeeks = 26

// daySet is a set of days, stored as bit sets.
type daySet struct {
	weekdays, weeks uint8
	month, workdays numbers
	// every is the number of weeks from one selected week to the next; with 0 or 1, all weeks are selected. week is the number of a selected
	// week.
	every, week int64
}

// numbers holds day numbers as bit sets, counted from the start and from the end of a month.
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

// has returns whether the sets contain a day, given its number first from the start and last from the end of the month.
func (n numbers) has(first, last int) bool { return n.first&(1<<first) != 0 || n.last&(1<<last) != 0 }

func (n numbers) none() bool { return n == numbers{} }

// weekNumber returns the number of the week of day d. Week 0 begins on Monday, 1970-01-05, which is day 4.
func weekNumber(d int64) int64 { return floorDiv(d-4, 7) }

// all returns whether the set contains all days.
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

// workdays counts the days from Monday to Friday between first and last, including both.
func workdays(first, last int64) int {
	until := func(d int64) int64 { // workdays from Monday, 1970-01-05, to the day before d
		days := d - 4
		weeks := floorDiv(days, 7)
		return weeks*5 + min(days-weeks*7, 5)
	}
	return int(until(last+1) - until(first))
}

// reach returns how many days ahead to search for the next start: three times the largest distance between neighboring days of the set,
// because gaps in local time can skip some of them.
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
