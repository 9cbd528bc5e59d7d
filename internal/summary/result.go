package summary

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Result is the result of reconciling a target.
type Result struct {
	Ruling verdict.Ruling
	// Gates lists the Gates that govern the target or whose names are on it.
	Gates []verdict.Gate
	// Wrote is true if the target was held or released. The next reconciliation sets its conditions.
	Wrote bool
	// Failure is the failure that keeps the target from its desired state, nil if there is none.
	Failure *Failure
}

// KeyFor returns the key of a Gate in a Summary.
func KeyFor(g *v1alpha1.Gate) Gate {
	return Gate{NamespacedName: types.NamespacedName{Namespace: g.Namespace, Name: g.Name}, UID: g.UID}
}

// Entries returns the entries of a target for the Gates that this process reconciles.
func (r *Result) Entries() []Entry {
	var entries []Entry
	for _, g := range r.Gates {
		if !g.IsOurs() {
			continue
		}
		held := slices.Contains(r.Ruling.Observed.HeldBy, g.Name)
		counts := g.Governs || g.Audits
		undecided := counts && g.Effect == verdict.Undecided
		awaits := held && r.Ruling.Wait != verdict.NoWait && r.Ruling.Wait != verdict.ForSlot
		e := Entry{Gate: KeyFor(g.Object), Failure: r.Failure, Uncounted: !counts, Pending: r.Wrote || undecided || awaits}
		if counts {
			e.Outcome, e.Overlaid = r.outcome(g, held), g.Overlaid
		}
		if counts || e.Pending || e.Failure != nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// outcome returns the outcome of a target for one Gate. held is true if the name of the Gate is on the target.
func (r *Result) outcome(g verdict.Gate, held bool) Outcome {
	step, state, closed := &r.Ruling.Step, r.Ruling.Observed.State, g.Effect == verdict.Closed
	exempts := closed || g.IsInitial()
	waits := r.Ruling.Wait != verdict.NoWait
	switch {
	case waits && held:
		return Held
	case waits && closed && r.Ruling.Plan.Exempt != target.NotExempt:
		return Exempt // because only other Gates hold it
	case r.Failure != nil && r.Failure.Reason == v1alpha1.WriteFailedReason:
		if held && state != target.Free && state != target.Passing {
			return Held
		}
	case step.Outcome == verdict.Passing && held, step.Hold && (closed || slices.Contains(step.Names, g.Name)):
		return Held
	case step.Outcome == verdict.SuspendedByOthers && exempts:
		return SuspendedByOthers
	case step.Outcome == verdict.Exempt && exempts:
		return Exempt
	}
	return Other
}
