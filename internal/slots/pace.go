// Package slots spreads releases over time and over namespaces.
package slots

import "time"

const (
	// tick is the shortest time between two batches. A faster pace releases several targets per batch.
	tick = time.Second

	// arrears bounds the delay that is made up at once. Releases that are overdue by more are not made up, because a restart after an
	// hour must not release an hour's worth of targets at once.
	arrears = 2 * tick
)

// Due returns how many releases a pace permits now, and when the next one is permitted. next is the time that the previous call returned,
// zero for the first call. This is the virtual scheduling algorithm of ITU-T I.371.
func Due(perMinute int32, next, now time.Time) (n int, then time.Time) {
	interval := time.Minute / time.Duration(perMinute)
	if next.IsZero() || next.After(now.Add(interval+arrears)) {
		next = now // next cannot be that far ahead, unless the clock was ahead
	}
	if next.After(now) {
		return 0, next
	}
	if oldest := now.Add(-arrears); next.Before(oldest) {
		next = oldest
	}
	n = int(now.Sub(next)/interval) + 1
	return n, next.Add(time.Duration(n) * interval)
}

// NextCheck returns when to call Due again.
func NextCheck(next, now time.Time) time.Time {
	if soonest := now.Add(tick); next.Before(soonest) {
		return soonest
	}
	return next
}
