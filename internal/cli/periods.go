package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// readPeriods reads times of day on days of the week, such as mon-fri 22:00-05:00. Whether the times are some is left to
// timetable.ValidateException.
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

// readDays reads days such as mon-fri or sat,sun. They are in the order of the week, which begins on Monday.
func readDays(text string) (days []v1alpha1.DayOfWeek, err error) {
	var on [7]bool
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		from, until := dayOf(first), dayOf(last)
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

// dayOf returns the number of a day by its name or the beginning of it, -1 if it is none.
func dayOf(text string) int {
	if len(text) < 3 {
		return -1
	}
	return slices.IndexFunc(weekdays, func(day string) bool { return strings.HasPrefix(day, text) })
}

// doubts returns warnings about an exception that has no effect on a Gate or only a part of it. inVain is why it has none, or empty.
func (w written) doubts(now time.Time) (doubts []string, inVain string) {
	g, e, others := w.gate, w.exception, w.others
	in := func(at time.Time) string { return formatTime(at.In(now.Location())) }
	for _, o := range others {
		if !e.OnlyCloses() && !o.OnlyCloses() && !o.ExpiredBy(now) && o.Spec.ValidFrom.Before(&e.Spec.ValidUntil) && e.Spec.ValidFrom.Before(&o.Spec.ValidUntil) {
			doubts = append(doubts, fmt.Sprintf("it overlaps with %s, which is in force from %s until %s: with config/policies the API server refuses it, and without, the newer one wins",
				nameOfException(o), in(o.Spec.ValidFrom.Time), in(o.Spec.ValidUntil.Time)))
		}
	}
	if g.Spec.Suspend {
		doubts = append(doubts, "the gate is suspended, and no exception changes that")
	}
	e = e.DeepCopy()
	e.CreationTimestamp = preview.NotCreated
	wanted, ok := wholeState(e)
	intervals, errs := gate.NewSnapshot(preview.WithoutApprovals(g), w.calendars, append(slices.Clone(others), e)...).Intervals(schedule.Later(now, e.Spec.ValidFrom.Time), e.Spec.ValidUntil.Time)
	switch {
	case len(errs) > 0:
		return append(doubts, "the spec of the gate is invalid, and no exception changes that: "+errs.ToAggregate().Error()), ""
	case !ok:
		return doubts, ""
	}
	works, partly := false, doubts
	for i := range intervals {
		if v1alpha1.State(i.State.String()) == wanted {
			works = true
			continue
		}
		why, state := causeIn(g, string(i.Reason), i.By), isState(i.State.String())
		partly = append(partly, fmt.Sprintf("the gate is still %s from %s until %s: %s", state, in(i.From), in(i.Until), why))
		if inVain == "" {
			inVain = fmt.Sprintf("the gate stays %s: %s", state, why)
		}
	}
	if works {
		return partly, ""
	}
	return doubts, inVain
}

// isState returns a state as a sentence has it: a Gate is open.
func isState(state string) string {
	return strings.Replace(state, string(v1alpha1.StateOpened), "open", 1)
}

// causeIn puts a reason into words, and says of a close period if nothing opens it.
func causeIn(g *v1alpha1.Gate, reason, by string) string {
	text := words(reason, by)
	for i := range g.Spec.ClosePeriods {
		if p := &g.Spec.ClosePeriods[i]; reason == v1alpha1.ClosePeriodReason && p.Name == by && p.Override == v1alpha1.OverrideDeny {
			return text + " (override: Deny)"
		}
	}
	return text
}

// wholeState returns the state that an exception brings throughout its validity, false if it brings several or leaves
// some time to the schedule.
func wholeState(e *v1alpha1.GateException) (v1alpha1.State, bool) {
	open, shut := e.Spec.OpenPeriods, e.Spec.ClosePeriods
	switch {
	case len(open)+len(shut) == 0:
		return e.Spec.Default, e.Spec.Default != ""
	case len(open)+len(shut) > 1:
		return "", false
	case len(open) == 1:
		return v1alpha1.StateOpened, isWhole(&open[0], e)
	default:
		return v1alpha1.StateClosed, isWhole(&shut[0], e)
	}
}

// isWhole returns whether a period is the whole validity of an exception.
func isWhole(p *v1alpha1.Period, e *v1alpha1.GateException) bool {
	return p.From != nil && p.Until != nil && p.From.Time().Equal(e.Spec.ValidFrom.Time) && p.Until.Time().Equal(e.Spec.ValidUntil.Time)
}
