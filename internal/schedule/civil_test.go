package schedule

import (
	"testing"
	"time"
)

func TestCivilMatchesStandardLibrary(t *testing.T) {
	// Four hundred years are the whole cycle of the calendar, the days before
	// 1970 the negative numbers.
	first := time.Date(1869, 12, 30, 0, 0, 0, 0, time.UTC)
	for at := first; at.Year() < 2271; at = at.AddDate(0, 0, 1) {
		days := floorDiv(at.Unix(), day)
		want := date{year: int64(at.Year()), month: int(at.Month()), day: at.Day()}
		if got := civil(days); got != want {
			t.Fatalf("day %d is %+v, want %+v", days, got, want)
		}
		if got := weekday(days); got != at.Weekday() {
			t.Fatalf("%s is a %s, want %s", at.Format(time.DateOnly), got, at.Weekday())
		}
		last := time.Date(at.Year(), at.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day()
		if got := want.daysIn(); got != last {
			t.Fatalf("the month of %s has %d days, want %d", at.Format(time.DateOnly), got, last)
		}
	}
}
