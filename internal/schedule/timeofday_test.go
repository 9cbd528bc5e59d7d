package schedule_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestParseTimeOfDay(t *testing.T) {
	const refused = -1
	for _, tt := range []struct {
		name       string
		text       string
		start, end schedule.TimeOfDay
	}{
		{"midnight starts and ends", "00:00", 0, 0},
		{"a minute past midnight", "00:01", 60, 60},
		{"the last hour has sixty minutes", "23:59", 86340, 86340},
		{"ten past nine", "09:10", 33000, 33000},
		{"the end of the day is an end only", "24:00", refused, 86400},
		{"a minute past the end of the day is neither", "24:01", refused, refused},
		{"there is no hour 25", "25:00", refused, refused},
		{"there is no minute 60", "12:60", refused, refused},
		{"nothing is not midnight", "", refused, refused},
		{"an hour alone is not a time", "12", refused, refused},
		{"an hour needs two digits", "9:10", refused, refused},
		{"a minute needs two digits", "09:1", refused, refused},
		{"seconds are not part of it", "09:10:00", refused, refused},
		{"a colon is needed", "09.10", refused, refused},
		{"five digits are not a time", "09010", refused, refused},
		{"a sign is not a digit of the hour", "-1:10", refused, refused},
		{"a sign is not a digit of the minute", "01:+1", refused, refused},
		{"a space before is not cut off", " 9:10", refused, refused},
		{"a space after is not cut off", "09:10 ", refused, refused},
		{"a character after the digit nine", "0::10", refused, refused},
		{"a character before the digit zero", "0/:10", refused, refused},
		{"a noon of the clock with two halves", "12 PM", refused, refused},
		{"digits of other scripts are not read", "١٢:٣٠", refused, refused},
		{"a text of five bytes in two characters", "1€1", refused, refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			start, err := schedule.ParseTimeOfDay(tt.text)
			checkTime(t, "start", tt.text, tt.start, start, err)
			end, err := schedule.ParseEndOfDay(tt.text)
			checkTime(t, "end", tt.text, tt.end, end, err)
		})
	}
}

func checkTime(t *testing.T, what, text string, want, got schedule.TimeOfDay, err error) {
	t.Helper()
	switch {
	case want < 0 && err == nil:
		t.Errorf("%q is accepted as %s", text, what)
	case want >= 0 && (err != nil || got != want):
		t.Errorf("%q as %s is %d, %v, want %d", text, what, got, err, want)
	}
}
