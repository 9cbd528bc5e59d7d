package view

import "time"

// CacheDelay is when to check again after the cache was behind. The event usually comes earlier.
const CacheDelay = time.Second

// Recheck is when to reconcile an object again. The zero value waits for an event.
type Recheck struct {
	At time.Time
}

// NotLaterThan moves the recheck to an instant if that is earlier. A zero instant has no effect.
func (r *Recheck) NotLaterThan(at time.Time) {
	if r.At.IsZero() || !at.IsZero() && at.Before(r.At) {
		r.At = at
	}
}
