package calendars

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/internal/timetable"
)

// mostOccurrences bounds the number of calendar occurrences in memory across all Gates. They take about 50 MiB.
const mostOccurrences = 1_000_000

// errOverBudget is the error for a calendar that exceeds the budget of its namespace.
var errOverBudget = errors.New(msgOverBudget)

// budget divides the memory for calendars among namespaces. Once all Gates have been reconciled, the result depends only on the
// calendars, so all replicas agree. A namespace that needs no more than an equal share keeps all of its calendars.
type budget struct {
	most int
	// taken is the number of occurrences of each calendar, by namespace.
	taken map[string]map[timetable.CalendarKey]int
	over  map[timetable.CalendarKey]bool
}

func newBudget(most int) *budget {
	return &budget{most: most, taken: map[string]map[timetable.CalendarKey]int{}, over: map[timetable.CalendarKey]bool{}}
}

// take records the occurrences of a calendar, and drop removes them.
func (s *budget) take(key timetable.CalendarKey, occurrences int) {
	if s.taken[key.Namespace] == nil {
		s.taken[key.Namespace] = map[timetable.CalendarKey]int{}
	}
	s.taken[key.Namespace][key] = occurrences
}

func (s *budget) drop(key timetable.CalendarKey) {
	delete(s.taken[key.Namespace], key)
	if len(s.taken[key.Namespace]) == 0 {
		delete(s.taken, key.Namespace)
	}
}

// has returns whether a calendar is recorded.
func (s *budget) has(key timetable.CalendarKey) bool {
	_, ok := s.taken[key.Namespace][key]
	return ok
}

// divide finds the calendars that exceed the budget of their namespace. It returns the calendars that now exceed it but did not before,
// and vice versa.
func (s *budget) divide() (changed []timetable.CalendarKey) {
	share, over := s.perNamespace(), map[timetable.CalendarKey]bool{}
	for _, calendars := range s.taken {
		left := share
		for _, key := range slices.SortedFunc(maps.Keys(calendars), compareCalendars) {
			if calendars[key] > left {
				over[key] = true
			} else {
				left -= calendars[key]
			}
		}
	}
	for key := range over {
		if !s.over[key] {
			changed = append(changed, key)
		}
	}
	for key := range s.over {
		if !over[key] {
			changed = append(changed, key)
		}
	}
	s.over = over
	return changed
}

// perNamespace returns the budget of a namespace. The unused part of the shares of small namespaces is divided among the others.
func (s *budget) perNamespace() int {
	var totals []int
	for _, calendars := range s.taken {
		total := 0
		for _, occurrences := range calendars {
			total += occurrences
		}
		totals = append(totals, total)
	}
	slices.Sort(totals)
	left := s.most
	for i, total := range totals {
		if share := left / (len(totals) - i); total > share {
			return share
		}
		left -= total
	}
	return s.most
}

func compareCalendars(a, b timetable.CalendarKey) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Key, b.Key), strings.Compare(a.Zone, b.Zone), strings.Compare(a.Categories, b.Categories),
		compareBools(a.Opens, b.Opens))
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
