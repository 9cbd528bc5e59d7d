package slots_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/slots"
)

var start = time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)

func TestNumberOfDueKeys(t *testing.T) {
	at := start.Add
	for name, tc := range map[string]struct {
		perMinute int32
		next      time.Time
		now, then time.Duration
		n         int
	}{
		"the first at once":                         {1, time.Time{}, 0, time.Minute, 1},
		"none before the time of the next":          {1, at(time.Minute), time.Minute - 1, time.Minute, 0},
		"one at that time":                          {1, at(time.Minute), time.Minute, 2 * time.Minute, 1},
		"a little late does not slow the pace":      {60, at(time.Second), 1500 * time.Millisecond, 2 * time.Second, 1},
		"several at once if the pace is fast":       {600, at(0), time.Second, 1100 * time.Millisecond, 11},
		"the last hour is not made up for":          {60, at(0), time.Hour, time.Hour + time.Second, 3},
		"a clock that was ahead does not stop it":   {60, at(time.Hour), 0, time.Second, 1},
		"the latest time that is not too late":      {60, at(3 * time.Second), 0, 3 * time.Second, 0},
		"a pace that does not divide the minute":    {7, at(0), 0, time.Minute / 7, 1},
		"the fastest pace there is, a second later": {60000, at(0), time.Second, 1001 * time.Millisecond, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			n, then := slots.Due(tc.perMinute, tc.next, at(tc.now))
			if n != tc.n || !then.Equal(at(tc.then)) {
				t.Errorf("%d, then at %s; want %d, then at %s", n, then.Sub(start), tc.n, tc.then)
			}
		})
	}
}

// However often and late Due is called, even with restarts, no second exceeds the pace and the arrears.
func TestRateIsNotExceeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		perMinute := rapid.Int32Range(1, 6000).Draw(t, "perMinute")
		now, next, total := start, time.Time{}, 0
		for range rapid.IntRange(1, 100).Draw(t, "asked") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(20*time.Second)).Draw(t, "later")))
			var n int
			n, next = slots.Due(perMinute, next, now)
			if most := int(perMinute)/30 + 2; n > most {
				t.Fatalf("%d at once at %d a minute", n, perMinute)
			}
			total += n
			if !next.After(now) {
				t.Fatalf("more are due at %s than were allowed: next at %s", now, next)
			}
		}
		if most := now.Sub(start).Minutes()*float64(perMinute) + 1; float64(total) > most {
			t.Fatalf("%d in %s at %d a minute", total, now.Sub(start), perMinute)
		}
	})
}

func TestDueKeepsRateIfCalledInTime(t *testing.T) {
	for _, perMinute := range []int32{1, 7, 59, 60, 61, 100, 600, 6000, 60000} {
		now, next, total := start, time.Time{}, 0
		for now.Before(start.Add(10 * time.Minute)) {
			var n int
			n, next = slots.Due(perMinute, next, now)
			total += n
			wake := slots.NextCheck(next, now)
			if wake.Sub(now) < time.Second {
				t.Fatalf("%d a minute: asked again after %s", perMinute, wake.Sub(now))
			}
			now = wake
		}
		if want := int(perMinute) * 10; total < want-int(perMinute)/60 || total > want+1 {
			t.Errorf("%d a minute: %d in ten minutes", perMinute, total)
		}
	}
}

func items(names ...string) []slots.Item {
	all := make([]slots.Item, len(names))
	for i, name := range names {
		parts := strings.Split(name, "/")
		all[i] = slots.Item{Namespace: parts[0], Name: parts[1]}
		all[i].Failed = len(parts) > 3
		if len(parts) > 2 {
			days := 0
			_, _ = fmt.Sscan(parts[2], &days)
			all[i].Expiry = start.AddDate(0, 0, days)
		}
	}
	return all
}

func same(items []slots.Item) map[slots.Item]slots.Item {
	all := map[slots.Item]slots.Item{}
	for _, item := range items {
		all[item] = item
	}
	return all
}

func TestSlotOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		items []string
		n     int
		last  string
		want  []string
	}{
		"in turn from each namespace":           {[]string{"a/1", "a/2", "a/3", "b/1", "c/1"}, 5, "", []string{"a/1", "b/1", "c/1", "a/2", "a/3"}},
		"the turns go on where they were":       {[]string{"a/2", "a/3", "b/1", "c/1"}, 2, "a", []string{"b/1", "c/1"}},
		"from the last to the first":            {[]string{"a/2", "b/1", "c/1"}, 2, "c", []string{"a/2", "b/1"}},
		"behind a namespace that has none left": {[]string{"a/2", "c/1"}, 2, "b", []string{"c/1", "a/2"}},
		"what came to nothing last":             {[]string{"a/1/3/failed", "a/2/90"}, 2, "", []string{"a/2", "a/1"}},
		"those that expire soonest first":       {[]string{"a/1/90", "a/2/3", "a/3/30"}, 3, "", []string{"a/2", "a/3", "a/1"}},
		"certificates before what does not end": {[]string{"a/1", "a/2/90"}, 2, "", []string{"a/2", "a/1"}},
		"by name if all else is equal":          {[]string{"a/2/5", "a/1/5", "a/3/5"}, 2, "", []string{"a/1", "a/2"}},
		"no more than there are":                {[]string{"a/1"}, 5, "", []string{"a/1"}},
		"none":                                  {nil, 5, "", nil},
		"none are due":                          {[]string{"a/1"}, 0, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			taken, left := slots.Take(items(tc.items...), tc.n, tc.last, same(items(tc.items...)))
			var got []string
			for _, item := range taken {
				got = append(got, item.Namespace+"/"+item.Name)
			}
			if !slices.Equal(got, tc.want) || len(taken)+len(left) != len(tc.items) {
				t.Errorf("got %q and %d left, want %q", got, len(left), tc.want)
			}
		})
	}
}

// One at a time or all at once, each namespace that has any left is never more than
// one turn behind another.
func TestNamespacesDoNotDelayEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		left := items()
		for _, namespace := range []string{"a", "b", "c"} {
			for i := range rapid.IntRange(0, 8).Draw(t, namespace) {
				left = append(left, slots.Item{Namespace: namespace, Name: fmt.Sprint(i)})
			}
		}
		seen, turns := map[string]int{}, 0
		for last := ""; len(left) > 0; {
			var taken []slots.Item
			before := len(left)
			taken, left = slots.Take(left, rapid.IntRange(1, 3).Draw(t, "n"), last, same(left))
			if len(taken) == 0 || len(taken)+len(left) != before {
				t.Fatalf("took %d of %d, %d left", len(taken), before, len(left))
			}
			for _, item := range taken {
				seen[item.Namespace]++
				turns = max(turns, seen[item.Namespace])
			}
			last = taken[len(taken)-1].Namespace
			for _, item := range left {
				if behind := turns - seen[item.Namespace]; behind > 1 {
					t.Fatalf("%s is %d turns behind: %v", item.Namespace, behind, seen)
				}
			}
		}
	})
}
