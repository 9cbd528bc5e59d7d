package view

import "time"

// CacheDelay is when to check again if the cache was behind. Usually an event triggers that earlier.
const CacheDelay = time.Second

// Recheck is when to reconcile an object again. Zero means when an event enqueues it.
type Recheck struct {
	At time.Time
}

// NotLaterThan moves the recheck to an instant if it is later or zero. A zero instant has no effect.
func (r *Recheck) NotLaterThan(at time.Time) {
	if r.At.IsZero() || !at.IsZero() && at.Before(r.At) {
		r.At = at
	}
}
