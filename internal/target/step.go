package target

import (
	"slices"
	"strings"
)

// Outcome is what became of a target from the view of one Gate.
type Outcome uint8

const (
	// Untouched means that the Gate is open and has nothing to undo.
	Untouched Outcome = iota
	// OutcomeHeld means that the target is held.
	OutcomeHeld
	// OutcomeForeign means that somebody else holds the target, the Gate leaves it alone.
	OutcomeForeign
	// OutcomeResumed means that somebody resumed the target and the Gate respects it.
	OutcomeResumed
	// OutcomeReleased means that the Gate no longer holds the target.
	OutcomeReleased
)

// Want is what a Gate wants of its targets.
type Want struct {
	// Gate as namespace/name.
	Gate string
	// Closed means that the targets are to be held.
	Closed bool
	// Respect a target that somebody resumed while it was held.
	Respect bool
}

// Step is what to do with a target.
type Step struct {
	Outcome Outcome
	// Write says whether the target has to be written.
	Write bool
	// Hold says whether the target is held after the step, by whichever Gate.
	Hold bool
	// HeldBy are the Gates that the target names after the step.
	HeldBy []string
	// Again says that somebody had resumed the target.
	Again bool
}

// Next returns what to do with a target in a state that names the Gates heldBy.
// A Gate adds and removes itself only, so that Gates that close and open at the
// same time need not know of each other.
func Next(state State, heldBy []string, want Want) Step {
	named := slices.Contains(heldBy, want.Gate)
	switch {
	case state == Foreign:
		// Whoever suspended it after resuming it has taken it over.
		step := Step{Write: len(heldBy) > 0}
		if want.Closed {
			step.Outcome = OutcomeForeign
		} else if named {
			step.Outcome = OutcomeReleased
		}
		return step
	case !want.Closed && !named && (state == Free || len(heldBy) > 0):
		return Step{Hold: state == Held, HeldBy: heldBy}
	case !want.Closed:
		// Without any name somebody removed the annotation: nobody else is left
		// to release it.
		rest := slices.DeleteFunc(slices.Clone(heldBy), func(gate string) bool { return gate == want.Gate })
		return Step{Outcome: OutcomeReleased, Write: true, Hold: state == Held && len(rest) > 0, HeldBy: rest}
	case named && state == Free && want.Respect:
		return Step{Outcome: OutcomeResumed, HeldBy: heldBy}
	case named:
		return Step{Outcome: OutcomeHeld, Write: state == Free, Hold: true, HeldBy: heldBy, Again: state == Free}
	}
	gates := append(slices.Clone(heldBy), want.Gate)
	slices.Sort(gates)
	return Step{Outcome: OutcomeHeld, Write: true, Hold: true, HeldBy: gates}
}

// ParseHeldBy returns the Gates in a held-by annotation.
func ParseHeldBy(value string) []string {
	var gates []string
	for gate := range strings.SplitSeq(value, ",") {
		if gate = strings.TrimSpace(gate); gate != "" {
			gates = append(gates, gate)
		}
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

// FormatHeldBy is the inverse of ParseHeldBy.
func FormatHeldBy(gates []string) string {
	gates = slices.Clone(gates)
	slices.Sort(gates)
	return strings.Join(slices.Compact(gates), ",")
}
