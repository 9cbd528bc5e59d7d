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
	// OutcomeExempt means that the target is not held although the Gate is closed.
	OutcomeExempt
)

// Want is what a Gate wants of its targets.
type Want struct {
	// Gate as namespace/name. Empty for what is held in nobody's name, because
	// somebody removed the annotation.
	Gate string
	// Closed means that the targets are to be held.
	Closed bool
	// Refusal is the reason why, if it is not that the Gate is closed.
	Refusal string
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
	// Claim says that the target has to be held before it is released: what is
	// not ours is not ours to remove.
	Claim bool
	// Again says that somebody had resumed the target.
	Again bool
}

// Next returns what to do with a target in a state that names the Gates heldBy,
// if the plan for it is made on the terms of those that it names afterwards. A
// Gate adds and removes itself only, so that Gates that close and open at the same
// time need not know of each other.
func Next(state State, heldBy []string, want Want, plan Plan) Step {
	named := slices.Contains(heldBy, want.Gate)
	held := state.held()
	nobodys := held && len(heldBy) == 0
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
	case !want.Closed && !named && (want.Gate != "" || !nobodys):
		return Step{Hold: held, HeldBy: heldBy}
	case !want.Closed:
		rest := After(heldBy, want)
		step := Step{Outcome: OutcomeReleased, Write: true, Hold: held && len(rest) > 0 && plan.Exempt == NotExempt, HeldBy: rest}
		step.Claim = held && state != Held && !step.Hold
		return step
	case plan.Exempt != NotExempt:
		return exempt(state, heldBy, want, plan)
	case named && state == Free && want.Respect && !plan.Pending:
		return Step{Outcome: OutcomeResumed, HeldBy: heldBy}
	case named:
		again := state == Free && !plan.Pending || state == Overridden && !want.Respect
		return Step{Outcome: OutcomeHeld, Write: state != Held || plan.Stale, Hold: true, HeldBy: heldBy, Again: again}
	}
	return Step{Outcome: OutcomeHeld, Write: true, Hold: true, HeldBy: After(heldBy, want)}
}

// exempt lets a target go that the Gate would hold. It goes on to name the Gates
// if that is to last, so that they find it again.
func exempt(state State, heldBy []string, want Want, plan Plan) Step {
	step := Step{Outcome: OutcomeExempt, HeldBy: heldBy, Write: state != Free}
	switch gates := After(heldBy, want); {
	case plan.Exempt.Lasts():
		step.HeldBy = gates
		step.Write = step.Write || len(gates) != len(heldBy)
	case plan.Exempt == Activates:
		step.HeldBy = nil
		step.Write = step.Write || len(heldBy) > 0
	}
	step.Claim = state == Locked || state == Overridden
	return step
}

// After returns the Gates that a target names once a Gate has what it wants.
func After(heldBy []string, want Want) []string {
	gates := slices.DeleteFunc(slices.Clone(heldBy), func(gate string) bool { return gate == want.Gate })
	if want.Closed {
		gates = append(gates, want.Gate)
		slices.Sort(gates)
	}
	return gates
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
