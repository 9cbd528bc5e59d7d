package act

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// describePeriod describes a period. of is the time zone of the object that contains the period. Instants are formatted in zone.
func describePeriod(p *v1alpha1.Period, of v1alpha1.TimeZone, zone *time.Location) string {
	text := ""
	switch {
	case p.From != nil && p.Until != nil && !p.From.Time().IsZero():
		return fmt.Sprintf("%s: from %s until %s", p.Name, term.FormatTime(p.From.Time().In(zone)), term.FormatTime(p.Until.Time().In(zone)))
	case p.From != nil && p.Until != nil:
		text = fmt.Sprintf("%s: from %s until %s", p.Name, *p.From, *p.Until)
		if len(*p.Until) == len(time.DateOnly) {
			text += " inclusive"
		}
	case p.Schedule != nil && p.Duration != nil:
		text = fmt.Sprintf("%s: cron %s, for %s", p.Name, *p.Schedule, term.FormatDuration(p.Duration.Duration))
		if timetable.IsAmbiguous(p) {
			text += ", on days that match the day of month OR the day of week,"
		}
	case p.Start != nil && p.End != nil:
		text = fmt.Sprintf("%s: %s from %s to %s", p.Name, describeDays(p), *p.Start, *p.End)
	default:
		return p.Name + ": invalid"
	}
	return text + " in " + string(cmp.Or(p.TimeZone, of, "UTC"))
}

func describeDays(p *v1alpha1.Period) string {
	text := cmp.Or(joined(p.DaysOfWeek), "daily")
	switch {
	case len(p.WeeksOfMonth) > 0:
		text += " (" + joined(p.WeeksOfMonth) + " of the month)"
	case len(p.DaysOfMonth) > 0:
		text = "on days " + joined(p.DaysOfMonth) + " of the month"
	case len(p.WorkdaysOfMonth) > 0:
		text = "on workdays " + joined(p.WorkdaysOfMonth) + " of the month"
	case p.EveryWeeks != nil && p.Anchor != nil:
		text += fmt.Sprintf(" every %d weeks, counted from the week of %s,", *p.EveryWeeks, *p.Anchor)
	}
	return text
}

func joined[T ~string | ~int32](words []T) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = fmt.Sprint(word)
	}
	return strings.Join(texts, ", ")
}
