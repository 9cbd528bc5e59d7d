package verdict

import (
	"slices"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Outcome is what becomes of a target.
type Outcome uint8

const (
	// Free means that nothing holds the target.
	Free Outcome = iota
	// Held means that Gates hold the target.
	Held
	// SuspendedByOthers means that somebody else holds the target. Gates leave it alone.
	SuspendedByOthers
	// Resumed means that somebody has resumed the target and all Gates respect that.
	Resumed
	// Exempt means that the target is not held although a Gate is closed.
	Exempt
	// Passing means that Gates hold the target, and that one reconciliation passes.
	Passing
)

// Step is what to do with a target.
type Step struct {
	Outcome Outcome
	// Write says whether to write the target.
	Write bool
	// Hold says whether the target is held after the step.
	Hold bool
	// Names are the Gates whose names are on the target after the step.
	Names []string
	// Claim says that the target must be held before it is let go: we can only remove what
	// is ours.
	Claim bool
	// Waits means that the target would be let go if all Gates had decided.
	Waits bool
	// Pass is what is noted on the target after the step. Ends is the same, but also there
	// if nothing is noted any more.
	Pass, Ends Pass
	// Refused says why a pass is refused that somebody has asked for, if that is not
	// noted.
	Refused string
}

// Next returns what to do with a target, from a verdict and the plan of its kind on the
// terms of the holders.
func Next(o Observed, v Verdict, plan target.Plan) Step {
	return applyPass(o, v, next(o, v, plan))
}

// next is Next without passes. A target that passes is held in its eyes, only not by what
// is on it.
func next(o Observed, v Verdict, plan target.Plan) Step {
	held := o.State != target.Free && o.State != target.SuspendedByOthers
	stays := Step{Hold: held, Names: o.HeldBy}
	if held {
		stays.Outcome = Held
	}
	changed := !slices.Equal(o.HeldBy, v.Names)
	switch {
	case o.State == target.SuspendedByOthers:
		// Somebody who suspends it after resuming it takes it over.
		return Step{Outcome: SuspendedByOthers, Write: len(o.HeldBy) > 0}
	case len(v.Names) == 0 && !held && len(o.HeldBy) == 0:
		return Step{}
	case len(v.Names) == 0 && v.Waits:
		stays.Waits = true
		return stays
	case len(v.Names) == 0:
		return Step{Write: true, Claim: o.claims()}
	case !v.closed:
		// The Gates with their name on it say nothing new, so it stays as it is.
		stays.Write, stays.Names = changed, v.Names
		return stays
	case plan.Exempt != target.NotExempt:
		return exempt(o, v, plan)
	case v.Resumed:
		return Step{Outcome: Resumed, Write: changed, Names: v.Names}
	}
	return Step{Outcome: Held, Write: changed || o.State != target.Held || plan.Stale, Hold: true, Names: v.Names}
}

// claims returns whether a target must be held by us before it is let go.
func (o Observed) claims() bool { return o.State == target.Locked || o.State == target.Overridden }

// exempt lets a target go that Gates would hold. It keeps their names if the exemption
// lasts.
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

// PassAnnotations returns the annotations that note a pass after the step.
func (s Step) PassAnnotations() map[string]string { return s.Pass.annotations() }

// PassAnnotations returns the annotations that note a pass before the step.
func (o Observed) PassAnnotations() map[string]string { return o.Pass.annotations() }
