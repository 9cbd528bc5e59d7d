package explain

import "slices"

// WouldBeHeld is the state of a target that a Gate with mode Audit would hold. It is used only in lists of the targets of a Gate.
const WouldBeHeld State = "would be held"

// StateTo returns the state of a target with respect to one Gate. The explanation must contain only that Gate. It returns false for a
// free target, which lists omit.
func StateTo(e Explanation) (State, bool) {
	wouldHold := slices.ContainsFunc(e.Gates, func(g Gate) bool { return g.WouldHold })
	if e.State == Free && wouldHold {
		return WouldBeHeld, true
	}
	return e.State, e.State != Free || e.Becomes != ""
}

// IsFresh returns whether a new revision or a renewal is waiting. Such objects come first in lists.
func (w *Waiting) IsFresh() bool { return w.Reason == NewRevision || w.Reason == RenewalDue }
