package gate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// inForceToo returns clauses for the message of a decision: about exceptions in force that the message does not name yet, and about those
// that are invalid or exceed the limit.
func inForceToo(d *Decision, t *timetable.Timetable, apply, excess []*v1alpha1.GateException, refused []string) (text string) {
	for _, e := range apply {
		if d.Reason != v1alpha1.ExceptionAppliesReason || d.By != e.Name {
			text += fmt.Sprintf(msgAlsoInForce, e.Name, format.Time(e.Spec.ValidUntil.Time))
		}
		switch {
		case slices.Contains(excess, e):
			text += fmt.Sprintf(msgAlsoTooMany, e.Name, v1alpha1.MaxEffectiveExceptions)
		case len(t.ExceptionErrors(e)) > 0 || slices.Contains(refused, e.Name):
			text += fmt.Sprintf(msgAlsoInvalid, e.Name)
		}
	}
	return text
}

// inBrackets returns the name of an event in parentheses, after a space. It is empty if there is no event.
func inBrackets(event string) string {
	if event == "" {
		return ""
	}
	return " (" + event + ")"
}

// WithEvent returns the name of a period, followed by the name of its calendar event in parentheses, such as holidays (Christmas Day).
func WithEvent(by, event string) string { return by + inBrackets(event) }

// message returns a sentence with the state of the Gate, its cause, and the time of the next transition. The texts for requests and for the
// default are taken from the Flux RFC on gating.
func message(s schedule.Decision, next *v1alpha1.Transition, spec *v1alpha1.GateSpec, request *ledger.Request) string {
	then := ""
	if next != nil {
		verb := "opening"
		if next.State == v1alpha1.StateClosed {
			verb = "closing"
		}
		then = fmt.Sprintf(msgScheduled, verb, format.Time(next.At.Time))
	}
	text := ""
	switch s.Reason {
	case schedule.OpenRequested, schedule.CloseRequested:
		return "Gate " + strings.TrimPrefix(then+", "+request.String(), ", ")
	case schedule.ClosePeriod:
		text = fmt.Sprintf(msgClosePeriod, s.By, inBrackets(s.Event))
	case schedule.NotYetActive:
		text = fmt.Sprintf(msgNotBefore, format.Time(spec.NotBefore.Time))
	case schedule.Expired:
		text = fmt.Sprintf(msgNotAfter, format.Time(spec.NotAfter.Time))
	case schedule.ExceptionApplies:
		text = fmt.Sprintf(msgByException, s.State, s.By)
	case schedule.OpenPeriod:
		text = fmt.Sprintf(msgOpenPeriod, s.By, inBrackets(s.Event))
	case schedule.OutsideOpenPeriods:
		text = msgOutsideOpenPeriods
	case schedule.OutsideClosePeriods:
		text = msgOutsideClosePeriods
	default:
		text = fmt.Sprintf(msgDefault, s.State)
	}
	if then == "" {
		return text
	}
	text += ", " + then
	if by := next.DecidedBy(); by != "" && by != s.By {
		text += fmt.Sprintf(" by '%s'%s", by, inBrackets(s.Next.Event))
	}
	return text
}

// after returns part with a leading comma and space, or an empty string if part is empty.
func after(part string) string {
	if part == "" {
		return ""
	}
	return ", " + part
}

// unreadable returns a message about a calendar that cannot be read, empty if all can be read. If the deciding close period has such a
// calendar, the message names that one.
func unreadable(s schedule.Decision, next *v1alpha1.Transition, broken []timetable.BrokenCalendar) string {
	if len(broken) == 0 {
		return ""
	}
	first, text := &broken[0], ""
	i := slices.IndexFunc(broken, func(b timetable.BrokenCalendar) bool { return b.Period == s.By })
	if s.Reason == schedule.ClosePeriod && i >= 0 {
		first = &broken[i]
	}
	switch {
	case s.Reason == schedule.ClosePeriod && i >= 0 && next == nil:
		text = msgUnreadable + first.String()
	default:
		text = fmt.Sprintf(msgOtherUnreadable, first.Period, first)
	}
	if more := len(broken) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}
