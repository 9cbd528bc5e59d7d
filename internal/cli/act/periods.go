package act

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// readPeriods parses periods such as mon-fri 22:00-05:00. timetable.ValidateException checks the times.
func readPeriods(texts []string) (periods []v1alpha1.Period, err error) {
	for i, text := range texts {
		fields := strings.Fields(strings.ToLower(text))
		if len(fields) == 0 || len(fields) > 2 {
			return nil, fmt.Errorf("--period %q: %s", text, periodForms)
		}
		start, end, ok := strings.Cut(fields[len(fields)-1], "-")
		if !ok {
			return nil, fmt.Errorf("--period %q: %s", text, periodForms)
		}
		period := v1alpha1.Period{Name: fmt.Sprintf("period-%d", i+1), Start: &start, End: &end}
		if len(fields) == 2 {
			if period.DaysOfWeek, err = readDays(fields[0]); err != nil {
				return nil, fmt.Errorf("--period %q: %w", text, err)
			}
		}
		periods = append(periods, period)
	}
	return periods, nil
}

const periodForms = `write 22:00-05:00, "mon-fri 10:00-12:00" or "sat,sun 08:00-24:00"`

// readDays parses days such as mon-fri or sat,sun, and returns them in weekday order, starting on Monday.
func readDays(text string) (days []v1alpha1.DayOfWeek, err error) {
	var on [7]bool
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, until := parseDay(first), parseDay(last)
		if from < 0 || until < 0 {
			return nil, fmt.Errorf("%q is not a day: %s", part, periodForms)
		}
		for d := from; ; d = (d + 1) % 7 {
			on[d] = true
			if d == until {
				break
			}
		}
	}
	for i := range 7 {
		if d := (i + 1) % 7; on[d] {
			days = append(days, v1alpha1.DayOfWeek(time.Weekday(d).String()))
		}
	}
	return days, nil
}

// parseDay returns the number of a day, or -1 if there is no such day. At least the first three letters of its name are required.
func parseDay(text string) int {
	if len(text) < 3 {
		return -1
	}
	return slices.IndexFunc(term.Weekdays, func(day string) bool { return strings.HasPrefix(day, text) })
}
