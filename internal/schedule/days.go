package schedule

import "time"

// WeekOfMonth says which of the days of a name in a month is meant.
type WeekOfMonth uint8

// The weeks of a month do not begin on a day of the week: First is the days 1 to 7, Fourth
// the days 22 to 28, and Last the last seven. So Last may be Fourth.
const (
	First WeekOfMonth = iota
	Second
	Third
	Fourth
	Last
)

// Days are those on which a weekly period starts.
type Days struct {
	// Weekdays are the days of the week, all seven where none is given.
	Weekdays []time.Weekday
	// Weeks are those of the month on the wall clock, all where none is given.
	Weeks []WeekOfMonth
}

// daySet has days as bit sets.
type daySet struct {
	weekdays, weeks uint8
}

const (
	// everyDay is all days of the week.
	everyDay uint8 = 1<<7 - 1
	// everyWeek is all weeks of a month: no day is before the last seven and after the
	// first 28.
	everyWeek uint8 = 1<<5 - 1
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
	if s.weeks == 0 {
		s.weeks = everyWeek
	}
	return s
}

// all returns whether the set has all days.
func (s daySet) all() bool { return s == daySet{everyDay, everyWeek} }

// has returns whether a day counted from 1970-01-01 is in the set.
func (s daySet) has(d int64) bool {
	if s.weekdays&(1<<weekday(d)) == 0 {
		return false
	}
	if s.weeks == everyWeek {
		return true
	}
	date := civil(d)
	// The fifth of its name is always the last.
	return s.weeks&(1<<((date.day-1)/7)) != 0 || s.weeks&(1<<Last) != 0 && date.day > date.daysIn()-7
}

// reach is how many days ahead the next start is looked for: a day of the set is at most
// 7 days after the one before it, or 35 if not all weeks count. Gaps of the zone may
// swallow a few.
func (s daySet) reach() int64 {
	if s.weeks == everyWeek {
		return 15
	}
	return 3*35 + 1
}
