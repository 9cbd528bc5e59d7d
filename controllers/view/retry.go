package view

import "time"

// CacheDelay is when to look again at what the cache has as it was. Its event tells earlier.
const CacheDelay = time.Second

// Recheck is when to look again at something. The zero value is for when something changes.
type Recheck struct {
	At time.Time
}

// NotLaterThan has it looked at again not later than at an instant, unless that is zero.
func (r *Recheck) NotLaterThan(at time.Time) {
	if r.At.IsZero() || !at.IsZero() && at.Before(r.At) {
		r.At = at
	}
}
