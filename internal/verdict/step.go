package verdict

import (
	"slices"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Outcome is the state of a target after a step.
type Outcome uint8

const (
	// Free means that nothing holds the target.
	Free Outcome = iota
	// Held means that Gates hold the target.
	Held
	// SuspendedByOthers means that a user or another client has suspended the target. Gates do not change it.
	SuspendedByOthers
	// Resumed means that another client has resumed the target and all Gates permit that.
	Resumed
	// Exempt means that the target is not held although a Gate is closed.
	Exempt
	// Passing means that Gates hold the target and permit one reconciliation.
	Passing
)

// Step is the next action on a target.
type Step struct {
	Outcome Outcome
	// Write is true if the target must be written.
	Write bool
	// Hold is true if the target is held after the step.
	Hold bool
	// Names lists the Gates whose names are on the target after the step.
	Names []string
	// Claim is true if the controller must hold the target before releasing it, because it can only remove its own fields.
	Claim bool
	// Waits is true if the target would be released if all Gates had decided.
	Waits bool
	// Pass is the recorded pass after the step. Ends is the same pass, but is also set if the record is removed.
	Pass, Ends Pass
	// Refused is the reason why a requested pass is refused, if that is not recorded on the target.
	Refused string
}

// Next returns the next action on a target, based on its observed state, the verdict, and the plan of its kind.
func Next(o Observed, v Verdict, plan target.Plan) Step {
	return applyPass(o, v, next(o, v, plan))
}

// next is like Next, but ignores requests for passes. It treats a passing target as held.
func next(o Observed, v Verdict, plan target.Plan) Step {
	held := o.State != target.Free && o.State != target.SuspendedByOthers
	stays := Step{Hold: held, Names: o.HeldBy}
	if held {
		stays.Outcome = Held
	}
	changed, released := !slices.Equal(o.HeldBy, v.Names), Free
	if len(v.Initial) > 0 {
		released = Exempt
	}
	switch {
	case o.State == target.SuspendedByOthers:
		// A client that suspends the target after resuming it takes it over, so the names are removed.
		return Step{Outcome: SuspendedByOthers, Write: len(o.HeldBy) > 0}
	case len(v.Names) == 0 && !held && len(o.HeldBy) == 0:
		return Step{Outcome: released}
	case len(v.Names) == 0 && v.Waits:
		stays.Waits = true
		return stays
	case len(v.Names) == 0:
		return Step{Outcome: released, Write: true, Claim: o.claims()}
	case v.isSuspended() && plan.Exempt == target.Imminent:
		return exempt(o, v, plan) // a suspended Gate must not let a certificate expire, either
	case !v.closed:
		// The Gates whose names are on the target are undecided, suspended or of other shards, so it stays held or free.
		stays.Write, stays.Names = changed || o.State == target.Held && v.isSuspended() && plan.Stale, v.Names
		return stays
	case plan.Exempt != target.NotExempt:
		return exempt(o, v, plan)
	case v.Resumed:
		return Step{Outcome: Resumed, Write: changed, Names: v.Names}
	}
	return Step{Outcome: Held, Write: changed || o.State != target.Held || plan.Stale, Hold: true, Names: v.Names}
}

// claims returns whether the controller must apply the hold itself before it can release the target.
func (o Observed) claims() bool { return o.State == target.Locked || o.State == target.Overridden }

// exempt returns the step that releases a target although Gates would hold it. If the exemption lasts, the target gets the names of the
// Gates. Otherwise, only names that are already on it stay. If its certificate is activated instead, no name stays.
func exempt(o Observed, v Verdict, plan target.Plan) Step {
	step := Step{Outcome: Exempt, Names: v.Names, Claim: o.claims()}
	switch {
	case plan.Exempt == target.Activates:
		step.Names = nil
	case !plan.Exempt.Lasts():
		step.Names = slices.DeleteFunc(slices.Clone(v.Names), func(name string) bool { return !slices.Contains(o.HeldBy, name) })
	}
	step.Write = o.State != target.Free || !slices.Equal(step.Names, o.HeldBy)
	return step
}

// PassAnnotations returns the annotations that record the pass after the step.
func (s Step) PassAnnotations() map[string]string { return s.Pass.annotations() }

// PassAnnotations returns the annotations that record the pass before the step.
func (o Observed) PassAnnotations() map[string]string { return o.Pass.annotations() }
