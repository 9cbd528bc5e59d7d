package view

import "time"

// CacheDelay is the delay before the next check if the cache was behind. Usually, an event arrives sooner.
const CacheDelay = time.Second

// Recheck is the time when an object is reconciled again. If it is zero, only events trigger that.
type Recheck struct {
	At time.Time
}

// NotLaterThan moves the recheck to an instant if the recheck is later or zero. A zero instant has no effect.
func (r *Recheck) NotLaterThan(at time.Time) {
	if r.At.IsZero() || !at.IsZero() && at.Before(r.At) {
		r.At = at
	}
}
