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
	// HeldBy are the Gates that the target has the names of.
	HeldBy []string
	// Exempted means that the target was exempt from a hold so far.
	Exempted bool
	// Told is when the condition Approved was set, zero if it is not there. Before that, nobody
	// knows whether a target that is free was resumed, or not held yet.
	Told time.Time
}

// Verdict is what all Gates together say about a target.
type Verdict struct {
	// Names are those that the target is to have.
	Names []string
	// Holders are the Gates that hold the target: those that are closed, and those that had
	// their name on it and say nothing else.
	Holders []Gate
	// Open has the names of the Gates that govern the target and are open.
	Open []string
	// Resumed means that somebody has resumed the target, and that all closed Gates respect it.
	Resumed bool
	// Again means that somebody has resumed the target, and that it is held again.
	Again bool
	// Waits means that a Gate has not decided yet: what is held is not let go.
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
		case g.Stand.holds():
			v.closed = true
		case g.Stand == Open:
			if g.Governs && g.wasOpen() {
				v.Open = append(v.Open, g.Name)
			}
			continue
		case !named:
			// Of a Gate that is suspended only its last state is known. That is enough to keep
			// what we hold in nobody's name.
			v.Waits = v.Waits || g.Stand == Undecided || g.Stand == Suspended && len(o.HeldBy) == 0 && !g.wasOpen()
			continue
		}
		v.Names, v.Holders = append(v.Names, g.Name), append(v.Holders, g)
	}
	slices.Sort(v.Names)
	slices.Sort(v.Open)
	slices.SortFunc(v.Holders, func(a, b Gate) int { return strings.Compare(a.Name, b.Name) })
	if v.closed && o.State == target.Free && !o.Exempted && v.all(func(g Gate) bool { return g.resumed(o) }) {
		v.Resumed = v.all(Gate.respects)
		v.Again = !v.Resumed
	}
	v.Again = v.Again || v.closed && o.State == target.Overridden && !v.all(Gate.respects)
	return v
}

// resumed returns whether a target that is free was held since a Gate closed: it has the name of
// the Gate, and its condition is not from the time before.
func (g Gate) resumed(o Observed) bool {
	return slices.Contains(o.HeldBy, g.Name) && !o.Told.IsZero() && g.closedSince(o.Told)
}

// all returns whether something is so for all Gates that want the target held.
func (v Verdict) all(is func(Gate) bool) bool {
	return !slices.ContainsFunc(v.Holders, func(g Gate) bool { return g.Stand.holds() && !is(g) })
}
