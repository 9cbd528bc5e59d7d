package slots

import (
	"cmp"
	"slices"
	"time"
)

// Item determines the position of a waiting key.
type Item struct {
	Namespace, Name string
	// Expiry is zero if the key does not expire.
	Expiry time.Time
	// Failed is true if the last release failed. In that case, other keys of the namespace come first.
	Failed bool
}

// Take returns the next n keys, or all if there are fewer, and the remaining keys. Namespaces take turns, starting after last, which is
// the namespace of the previous key. Within a namespace, the keys that expire first come first.
func Take[K comparable](keys []K, n int, last string, items map[K]Item) (taken, left []K) {
	queues := map[string][]K{}
	for _, key := range keys {
		namespace := items[key].Namespace
		queues[namespace] = append(queues[namespace], key)
	}
	var namespaces []string
	for namespace, queue := range queues {
		namespaces = append(namespaces, namespace)
		slices.SortFunc(queue, func(a, b K) int { return compare(items[a], items[b]) })
	}
	slices.Sort(namespaces)
	at, found := slices.BinarySearch(namespaces, last)
	if found {
		at++
	}
	for len(namespaces) > 0 && len(taken) < n {
		at %= len(namespaces)
		queue := queues[namespaces[at]]
		taken = append(taken, queue[0])
		if queues[namespaces[at]] = queue[1:]; len(queue) > 1 {
			at++
		} else {
			namespaces = slices.Delete(namespaces, at, at+1) // the next one moves up
		}
	}
	for _, namespace := range namespaces {
		left = append(left, queues[namespace]...)
	}
	return taken, left
}

func compare(a, b Item) int {
	return cmp.Or(order(a.Failed, b.Failed), order(a.Expiry.IsZero(), b.Expiry.IsZero()), a.Expiry.Compare(b.Expiry), cmp.Compare(a.Name, b.Name))
}

// order sorts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
