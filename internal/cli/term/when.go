package term

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// TimeForms lists the accepted forms of a time, for error messages.
const TimeForms = "write 17:30, 5pm, tomorrow 08:00, monday 08:00, 2026-12-24, 2026-12-24 08:00, 2h, 3d or a time in RFC 3339"

// errUnknownTime is returned for a text that is not a time.
var errUnknownTime = errors.New("cannot be read as a time: " + TimeForms)

var layouts = []string{"2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", "2006-01-02"}

// ParseFutureTime parses a time in the zone of now. It returns an error unless the time is after now. A time without a date means its
// next occurrence.
func ParseFutureTime(text string, now time.Time) (time.Time, error) {
	text = normalize(text)
	at, err := ReadTime(text, now)
	if err == nil && !at.After(now) {
		err = PastError(now)
	}
	return at, err
}

// PastError returns the error for a time that is not after now.
func PastError(now time.Time) error {
	return fmt.Errorf("is in the past: it is %s now", FormatTime(now))
}

// normalize converts a text to the form that ReadTime parses.
func normalize(text string) string { return strings.Join(strings.Fields(strings.ToLower(text)), " ") }

// ReadTime parses a normalized time, in the zone of now. A time of day or a weekday means its next occurrence.
func ReadTime(text string, now time.Time) (time.Time, error) { return readTime(text, now, false) }

// ReadPast parses a time in the zone of now. A time of day or a weekday means its last occurrence.
func ReadPast(text string, now time.Time) (time.Time, error) {
	return readTime(normalize(text), now, true)
}

func readTime(text string, now time.Time, past bool) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339, strings.ToUpper(text)); err == nil {
		return at.In(now.Location()), nil
	}
	if d, err := v1alpha1.ParseDuration(strings.TrimPrefix(text, "in ")); err == nil {
		return now.Add(d), nil
	}
	for _, layout := range layouts {
		if wall, err := time.Parse(layout, strings.ToUpper(text)); err == nil {
			return resolve(wall, now.Location()), nil
		}
	}
	day, clock, _ := strings.Cut(text, " ")
	offset, named := dayOffset(day, now)
	switch {
	case named && clock == "":
		clock = "00:00"
	case !named:
		day, clock, offset = "", text, 0
	}
	hour, minute, err := parseClock(clock)
	if err != nil {
		return time.Time{}, errUnknownTime
	}
	on := func(days int) time.Time {
		return resolve(time.Date(now.Year(), now.Month(), now.Day()+days, hour, minute, 0, 0, time.UTC), now.Location())
	}
	days := 0
	switch {
	case day == "":
		days = 1
	case parseWeekday(day) >= 0:
		days = 7
	}
	switch later := on(offset).After(now); {
	case past && later:
		offset -= days
	case !past && !later:
		offset += days
	}
	return on(offset), nil
}

// dayOffset returns the number of days from now until a named day, from 0 to 6 for a weekday. It returns false if day is not the name of
// a day.
func dayOffset(day string, now time.Time) (days int, named bool) {
	switch day {
	case "today":
		return 0, true
	case "tomorrow":
		return 1, true
	case "yesterday":
		return -1, true
	}
	weekday := parseWeekday(day)
	return (weekday - int(now.Weekday()) + 7) % 7, weekday >= 0
}

// Weekdays are the names of the days of the week.
var Weekdays = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

// parseWeekday returns the number of a weekday from its name or the first three letters of its name, or -1 if the text is neither.
func parseWeekday(text string) int {
	return slices.IndexFunc(Weekdays, func(day string) bool { return text == day || text == day[:3] })
}

// parseClock parses a time of day. 24:00 means the end of the day.
func parseClock(text string) (hour, minute int, err error) {
	if text == "24:00" {
		return 24, 0, nil
	}
	for _, layout := range []string{"15:04", "3pm", "3:04pm"} {
		wall, wrong := time.Parse(layout, text)
		if err = wrong; err == nil {
			return wall.Hour(), wall.Minute(), nil
		}
	}
	return 0, 0, err
}

// ReadEnd parses an end relative to a start. A time without a date means its first occurrence after the start. The words today and
// tomorrow are relative to now.
func ReadEnd(text string, from, now time.Time) (time.Time, error) {
	text = normalize(text)
	if strings.HasPrefix(text, "to") {
		return ReadTime(text, now)
	}
	return ReadTime(text, from)
}

// resolve returns the instant of a wall-clock time, given as if it were in UTC. As specified in RFC 5545, section 3.3.5, it returns the
// first of two instants, and uses the offset before a gap for skipped times.
func resolve(wall time.Time, zone *time.Location) time.Time {
	_, before := wall.Add(-24 * time.Hour).In(zone).Zone()
	_, after := wall.Add(24 * time.Hour).In(zone).Zone()
	for _, offset := range []int{before, after} {
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, is := at.Zone(); is == offset {
			return at
		}
	}
	return wall.Add(-time.Duration(before) * time.Second).In(zone)
}
