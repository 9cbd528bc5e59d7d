package verdict

import (
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/internal/target"
)

// Observed is the observed state of a target.
type Observed struct {
	State target.State
	// HeldBy lists the Gates whose names are on the target.
	HeldBy []string
	// Exempted is true if the target has been exempt from a hold.
	Exempted bool
	// ReportedAt is the time when the condition Approved was set, zero if it is missing. It distinguishes a resumed target from one that was never
	// held.
	ReportedAt time.Time
	// Pass is the record of the last pass, with the progress that Flux reports now. Advanced is true if some of that progress is not recorded
	// yet. Outcome and Message describe how the pass has ended, empty if it has not.
	Pass             Pass
	Advanced         bool
	Outcome, Message string
	// RequestPresent is true if the request for this pass is still on the target. Until it is removed, the record is kept, so that the request
	// does not count again.
	RequestPresent bool
	// Request is a new request for a pass, nil if there is none.
	Request *PassRequest
	// Revision is the revision of the target, and Now is the time. Both are for the record of a pass.
	Revision string
	Now      time.Time
}

// Verdict is the combined effect of all Gates on a target.
type Verdict struct {
	// Names lists the names that must be on the target.
	Names []string
	// Holders lists the Gates that hold the target: those that must hold it, and those whose names are on it while they are undecided,
	// suspended or of another shard.
	Holders []Gate
	// Open lists the names of the open Gates that govern the target, and Opened lists the Gates themselves.
	Open   []string
	Opened []Gate
	// Initial lists the closed Gates that do not hold the target because they allow its initial reconciliation.
	Initial []Gate
	// Audits lists the Gates with mode Audit that govern the target and release it.
	Audits []Gate
	// Resumed is true if another client has resumed the target, and all closed Gates permit that.
	Resumed bool
	// Again is true if another client has resumed the target, and it is held again.
	Again bool
	// Waits is true if a Gate has not decided yet. Until then, a held target is not released.
	Waits bool
	// closed is true if at least one Gate must hold the target.
	closed bool
}

// Judge returns the verdict of the Gates that concern a target. gates must contain each Gate only once.
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
			case g.IsInitial():
				v.Initial = append(v.Initial, g)
			case g.Governs && g.wasOpen():
				v.Open, v.Opened = append(v.Open, g.Name), append(v.Opened, g)
			}
			continue
		case !named:
			// Only the last state of a suspended Gate is known. That is reason enough to keep a hold without a name.
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
	slices.SortFunc(v.Initial, byName)
	if v.closed && o.State == target.Free && !o.Exempted && v.all(func(g Gate) bool { return g.resumed(o) }) {
		v.Resumed = v.all(Gate.respects)
		v.Again = !v.Resumed
	}
	v.Again = v.Again || v.closed && o.State == target.Overridden && !v.all(Gate.respects)
	return v
}

// resumed returns whether a free target was held after the Gate had closed: the name of the Gate is on it, and the target's condition is
// not older than the closing.
func (g Gate) resumed(o Observed) bool {
	return slices.Contains(o.HeldBy, g.Name) && !o.ReportedAt.IsZero() && g.closedSince(o.ReportedAt)
}

// isSuspended returns whether all Gates that hold the target are suspended, or there are none.
func (v Verdict) isSuspended() bool {
	return !slices.ContainsFunc(v.Holders, func(g Gate) bool { return g.Effect != Suspended })
}

// all returns whether the predicate is true for all Gates that must hold the target.
func (v Verdict) all(is func(Gate) bool) bool {
	return !slices.ContainsFunc(v.Holders, func(g Gate) bool { return g.Effect.holds() && !is(g) })
}
