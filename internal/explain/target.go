package explain

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The states of a target that only its Gate knows.
const (
	// WouldBeHeld is the state of what a Gate with mode Audit would hold.
	WouldBeHeld State = "would be held"
	// Suspended is the state of what somebody else has suspended while the Gate is open: the Gate does not count it as foreign.
	Suspended State = "suspended"
)

// StateTo returns the state of a target of a Gate as the Gate counts it. The explanation is by that Gate alone. It returns false for a
// target that is free, which no list has.
func StateTo(g *v1alpha1.Gate, e Explanation) (State, bool) {
	wouldHold := slices.ContainsFunc(e.Gates, func(g Gate) bool { return g.WouldHold })
	switch {
	case e.State == Foreign && meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition):
		return Suspended, true
	case e.State == Free && wouldHold:
		return WouldBeHeld, true
	}
	return e.State, e.State != Free || e.Becomes != ""
}

// IsFresh returns whether something new is known to wait, so that a list has it first.
func (w *Waiting) IsFresh() bool { return w.Reason == NewRevision || w.Reason == RenewalDue }
