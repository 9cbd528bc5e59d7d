package timetable

import (
	"fmt"
	"strings"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// notCounted returns how many events of a file do not count, and why, empty if all count. Older versions of an event are not included.
// Events of other categories are reported only if no event counts.
func notCounted(c *ical.Calendar) string {
	by, older := map[string]int{}, 0
	for _, n := range c.NotCounted {
		switch n.Cause {
		case ical.Cancelled, ical.Transparent, ical.OtherCategories:
			by[n.Cause]++
		default:
			older++
		}
	}
	of, n := c.Events-older, by[ical.Cancelled]+by[ical.Transparent]
	switch {
	case of > 0 && n+by[ical.OtherCategories] == of:
		n = of
	case n == 0:
		return ""
	default:
		delete(by, ical.OtherCategories)
	}
	var why []string
	for _, cause := range []struct{ cause, word string }{
		{ical.Transparent, "TRANSPARENT"}, {ical.Cancelled, "CANCELLED"}, {ical.OtherCategories, "of other categories"},
	} {
		if by[cause.cause] > 0 {
			why = append(why, fmt.Sprintf("%d %s", by[cause.cause], cause.word))
		}
	}
	verb := "do"
	if n == 1 {
		verb = "does"
	}
	return fmt.Sprintf(msgNotCounted, n, of, verb, strings.Join(why, ", "))
}
