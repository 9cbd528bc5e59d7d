package controllers

import (
	"slices"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tally"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// settled is what came of looking at a target.
type settled struct {
	ruling verdict.Ruling
	gates  []verdict.Gate
	// waits means that the target is to be let go, but has to wait, and inLine that it waits for its turn.
	waits, inLine bool
	// wrote means that the target was held or let go: its conditions are to follow.
	wrote bool
	recheck
	// failure is why the target is not as it should be, nil if it is.
	failure *tally.Failure
}

// failed notes why a look did not come to an end.
func (s settled) failed(reason string, err error) (settled, error) {
	s.failure = &tally.Failure{Reason: reason, Message: err.Error()}
	return s, err
}

// entries returns what became of a target for each of the Gates that this process reconciles.
func (s settled) entries() []tally.Entry {
	var entries []tally.Entry
	for _, g := range s.gates {
		if !isOurs(g) {
			continue
		}
		held := slices.Contains(s.ruling.Observed.HeldBy, g.Name)
		counts := g.Governs || g.Audits
		decides := counts && g.Stand == verdict.Undecided
		e := tally.Entry{
			Gate: tallied(g.Object), Failure: s.failure, Uncounted: !counts, Pending: s.wrote || decides || s.waits && held && !s.inLine,
		}
		if counts {
			e.Outcome = s.outcome(g, held)
		}
		if counts || e.Pending || e.Failure != nil {
			entries = append(entries, e)
		}
	}
	return entries
}

// outcome returns what became of a target for one Gate.
func (s settled) outcome(g verdict.Gate, held bool) tally.Outcome {
	step := s.ruling.Step
	closes := g.Stand == verdict.Closed
	switch {
	case s.waits && held:
		return tally.Held
	case s.failure != nil && s.failure.Reason == v1alpha1.WriteFailedReason:
		if held && s.ruling.Observed.State != target.Free && s.ruling.Observed.State != target.Passing {
			return tally.Held
		}
	case step.Outcome == verdict.Passing && held:
		return tally.Held
	case step.Hold && slices.Contains(step.Names, g.Name), step.Hold && closes:
		return tally.Held
	case step.Outcome == verdict.Foreign && closes:
		return tally.Foreign
	case step.Outcome == verdict.Exempt && closes:
		return tally.Exempt
	}
	return tally.Other
}

// isPacing returns whether a Gate is open and releases its targets at a pace.
func isPacing(g verdict.Gate) bool {
	return g.Stand == verdict.Open && g.Governs && g.Object.Spec.Release != nil
}
