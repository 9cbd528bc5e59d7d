package schedule

import "time"

// Between returns the period between two times, where zero means unbounded as in Dated. It is empty if there is no whole second between
// them.
func Between(name string, from, until time.Time) Period {
	period, err := Dated(name, from, until)
	if err != nil {
		return Period{}
	}
	return period
}

// Earlier returns the earlier of two times. Zero means never.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// RoundUp returns the first whole second that is not before t, zero if t is zero.
func RoundUp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(time.Second - 1).Truncate(time.Second)
}
