package verdict

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Observed is what is known of a target.
type Observed struct {
	State target.State
	// HeldBy are the Gates whose names are on the target.
	HeldBy []string
	// Exempted means that the target was exempt from a hold so far.
	Exempted bool
	// ReportedAt is when the condition Approved was set, zero if it is missing. Without it
	// nobody knows whether a free target was resumed, or was never held.
	ReportedAt time.Time
	// Pass is the record of the last pass on the target, with the progress that Flux
	// reports. Advanced means that the record lacks some of it. Outcome and Message say
	// how the pass has ended, if the target shows it.
	Pass             Pass
	Advanced         bool
	Outcome, Message string
	// RequestPresent means that the request for this pass is still on the target. The note
	// stays as long, so that it does not count again.
	RequestPresent bool
	// Request is a new request for a pass, nil if there is none.
	Request *PassRequest
	// Revision of the target, and Now, for what is noted.
	Revision string
	Now      time.Time
}

// Verdict is what all Gates together say about a target.
type Verdict struct {
	// Names are the names that the target must have.
	Names []string
	// Holders are the Gates that hold the target: those that are closed, and those that
	// have their name on it and say nothing else.
	Holders []Gate
	// Open has the names of the open Gates that govern the target, and Opened has these
	// Gates.
	Open   []string
	Opened []Gate
	// Audits are the Gates with mode Audit that govern the target and let it go.
	Audits []Gate
	// Resumed means that somebody has resumed the target, and that all closed Gates respect it.
	Resumed bool
	// Again means that somebody has resumed the target, and that it is held again.
	Again bool
	// Waits means that a Gate has not decided yet. Until then a held target is not let go.
	Waits bool
	// closed means that one of the holders wants the target held.
	closed bool
}

// Judge returns the verdict of Gates, all that have to do with a target, each once.
func Judge(o Observed, gates []Gate) Verdict {
	var v Verdict
	for _, g := range gates {
		named := slices.Contains(o.HeldBy, g.Name)
		switch {
		case g.Effect.holds():
			v.closed = true
		case g.Effect == Open:
			switch {
			case g.Audits:
				v.Audits = append(v.Audits, g)
			case g.Governs && g.wasOpen():
				v.Open, v.Opened = append(v.Open, g.Name), append(v.Opened, g)
			}
			continue
		case !named:
			// Only the last state of a suspended Gate is known. That is enough to keep a
			// hold of ours that has no name on it.
			v.Waits = v.Waits || g.Effect == Undecided || g.Effect == Suspended && len(o.HeldBy) == 0 && !g.wasOpen()
			continue
		}
		v.Names, v.Holders = append(v.Names, g.Name), append(v.Holders, g)
	}
	slices.Sort(v.Names)
	slices.Sort(v.Open)
	byName := func(a, b Gate) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(v.Holders, byName)
	slices.SortFunc(v.Opened, byName)
	slices.SortFunc(v.Audits, byName)
	if v.closed && o.State == target.Free && !o.Exempted && v.all(func(g Gate) bool { return g.resumed(o) }) {
		v.Resumed = v.all(Gate.respects)
		v.Again = !v.Resumed
	}
	v.Again = v.Again || v.closed && o.State == target.Overridden && !v.all(Gate.respects)
	return v
}

// resumed returns whether a free target was held since a Gate closed: the name of the Gate
// is on it, and its condition is not older than the closing.
func (g Gate) resumed(o Observed) bool {
	return slices.Contains(o.HeldBy, g.Name) && !o.ReportedAt.IsZero() && g.closedSince(o.ReportedAt)
}

// all returns whether something is true of all Gates that want the target held.
func (v Verdict) all(is func(Gate) bool) bool {
	return !slices.ContainsFunc(v.Holders, func(g Gate) bool { return g.Effect.holds() && !is(g) })
}
