package schedule

import "time"

// date is a day of the proleptic Gregorian calendar.
type date struct {
	year       int64
	month, day int
}

// civil returns the date of a day counted from 1970-01-01. It is the inverse of days-from-civil as derived by Howard Hinnant in
// "chrono-Compatible Low-Level Date Algorithms"; time.Date is several times slower.
func civil(days int64) date {
	days += 719468
	era := floorDiv(days, 146097)
	dayOfEra := days - era*146097
	yearOfEra := (dayOfEra - dayOfEra/1460 + dayOfEra/36524 - dayOfEra/146096) / 365
	dayOfYear := dayOfEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*dayOfYear + 2) / 153
	d := date{
		year:  yearOfEra + era*400,
		month: int(shifted) + 3,
		day:   int(dayOfYear-(153*shifted+2)/5) + 1,
	}
	if d.month > 12 {
		d.month -= 12
		d.year++
	}
	return d
}

// daysIn returns the number of days of the month of d.
func (d date) daysIn() int {
	switch d.month {
	case 2:
		if d.year%4 == 0 && (d.year%100 != 0 || d.year%400 == 0) {
			return 29
		}
		return 28
	case 4, 6, 9, 11:
		return 30
	}
	return 31
}

// weekday returns the weekday of a day counted from 1970-01-01, a Thursday.
func weekday(days int64) time.Weekday {
	return time.Weekday(days + 4 - 7*floorDiv(days+4, 7))
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
