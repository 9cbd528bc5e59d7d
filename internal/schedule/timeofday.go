package schedule

import "errors"

// TimeOfDay is a wall-clock time in seconds since midnight, up to and including 24:00.
type TimeOfDay int64

// ParseTimeOfDay parses HH:MM from 00:00 to 23:59.
func ParseTimeOfDay(s string) (TimeOfDay, error) {
	t, err := ParseEndOfDay(s)
	if err != nil || int64(t) == day {
		return 0, errors.New("must be a time of day from 00:00 to 23:59")
	}
	return t, nil
}

// ParseEndOfDay parses HH:MM from 00:00 to 24:00, where 24:00 is the midnight that ends the day.
func ParseEndOfDay(s string) (TimeOfDay, error) {
	digit := func(i int) int64 { return int64(s[i]) - '0' }
	if len(s) == 5 && s[2] == ':' {
		for _, i := range []int{0, 1, 3, 4} {
			if s[i] < '0' || s[i] > '9' {
				return 0, errors.New("must be a time of day from 00:00 to 24:00")
			}
		}
		h, m := digit(0)*10+digit(1), digit(3)*10+digit(4)
		if t := h*hour + m*minute; m < 60 && t <= day {
			return TimeOfDay(t), nil
		}
	}
	return 0, errors.New("must be a time of day from 00:00 to 24:00")
}
