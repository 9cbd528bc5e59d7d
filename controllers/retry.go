package controllers

import "time"

// cacheDelay is when to look again at what the cache has as it was. Its event tells earlier.
const cacheDelay = time.Second

// recheck is when to look again at something. The zero value is for when something changes.
type recheck struct {
	at time.Time
}

// again has it looked at again not later than at an instant, unless that is zero.
func (r *recheck) again(at time.Time) {
	if r.at.IsZero() || !at.IsZero() && at.Before(r.at) {
		r.at = at
	}
}
