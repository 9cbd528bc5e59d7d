// Package pace spreads releases over time and over namespaces.
package pace

import (
	"cmp"
	"slices"
	"time"
)

const (
	// tick is the shortest time between two batches: faster paces release several
	// at once.
	tick = time.Second

	// arrears is how much of the pace is made up for after a delay. What was due
	// before is late for good: a restart after an hour must not release an hour's
	// worth at once.
	arrears = 2 * tick
)

// Due returns how many may be released now at a pace, if the next was allowed from
// an instant on, zero for the first. It returns from when on the one after those is
// allowed. This is the virtual scheduling algorithm of ITU-T I.371.
func Due(perMinute int32, next, now time.Time) (n int, then time.Time) {
	interval := time.Minute / time.Duration(perMinute)
	if next.IsZero() {
		next = now
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

// Wake returns when to ask Due again.
func Wake(next, now time.Time) time.Time {
	if soonest := now.Add(tick); next.Before(soonest) {
		return soonest
	}
	return next
}

// Item is what decides on the turn of something.
type Item struct {
	Namespace, Name string
	// Expiry is zero if there is none.
	Expiry time.Time
}

// Take returns the next n of some items, and those that are left: in turn from each
// namespace, of each those first that expire soonest. Released is how many had
// their turn before, so that the turns go on where they were.
func Take[T any](items []T, n, released int, of func(T) Item) (taken, left []T) {
	byNamespace := map[string][]T{}
	for _, item := range items {
		namespace := of(item).Namespace
		byNamespace[namespace] = append(byNamespace[namespace], item)
	}
	namespaces := make([]string, 0, len(byNamespace))
	for namespace, queue := range byNamespace {
		namespaces = append(namespaces, namespace)
		slices.SortFunc(queue, func(a, b T) int { return compare(of(a), of(b)) })
	}
	slices.Sort(namespaces)
	for turn := released; len(namespaces) > 0 && len(taken) < n; turn++ {
		at := turn % len(namespaces)
		queue := byNamespace[namespaces[at]]
		taken = append(taken, queue[0])
		if byNamespace[namespaces[at]] = queue[1:]; len(queue) == 1 {
			namespaces = slices.Delete(namespaces, at, at+1)
			turn-- // the one behind it moves up
		}
	}
	for _, namespace := range namespaces {
		left = append(left, byNamespace[namespace]...)
	}
	return taken, left
}

func compare(a, b Item) int {
	if a.Expiry.IsZero() != b.Expiry.IsZero() {
		if b.Expiry.IsZero() {
			return -1
		}
		return 1
	}
	return cmp.Or(a.Expiry.Compare(b.Expiry), cmp.Compare(a.Name, b.Name))
}
