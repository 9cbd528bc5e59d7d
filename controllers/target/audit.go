package target

import (
	"cmp"
	"slices"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// recordOutcome records the outcome of a target in the summary, and emits an event if a Gate with mode Audit would begin to hold the
// target. It emits no event for an outcome from before a restart, or for a target that the Gate has just released, because the release
// has its own event.
func (r *Reconciler) recordOutcome(key target.Key, s *Result, now time.Time) {
	entries := s.Entries()
	s.recordPasses(key, r.Passes, r.Queues)
	for _, g := range s.Gates {
		if !g.Audits || !g.IsOurs() {
			continue
		}
		i := slices.IndexFunc(entries, func(e summary.Entry) bool { return e.Gate == summary.KeyFor(g.Object) })
		if i < 0 || entries[i].Outcome != summary.Other {
			continue
		}
		before := r.Summary.Outcome(key, entries[i].Gate)
		entries[i].Outcome = s.audit(g, before)
		if entries[i].Outcome == summary.WouldHold && before != summary.WouldHold && before != summary.Held && r.Summary.IsComplete() {
			r.TargetEvents.Audited(s.Ruling.Object, g, s.Ruling.Now)
		}
	}
	r.Summary.Put(key, entries, now)
	r.rolloutRecorder().Record(key, s.Gates, s.member)
}

// audit returns the outcome for a Gate with mode Audit as if its mode were Enforce. While the Gate is undecided, it returns
// before.
func (s *Result) audit(g verdict.Gate, before summary.Outcome) summary.Outcome {
	switch {
	case g.Would == verdict.Open:
		return summary.Other
	case g.Would != verdict.Closed:
		return before
	}
	would := s.Ruling.Would(g, s.Gates)
	s.NotLaterThan(would.Plan.Recheck)
	switch {
	case would.Step.Hold:
		return summary.WouldHold
	case would.Step.Outcome == verdict.SuspendedByOthers:
		return summary.SuspendedByOthers
	case would.Step.Outcome == verdict.Exempt:
		return summary.Exempt
	}
	return summary.Other
}

// recordPasses records the pass of a target for its Gates, and enqueues the Gates that add it to their history.
func (s *Result) recordPasses(key target.Key, passes *rollout.Passes, queues enqueue.Enqueuer) {
	pass := s.Ruling.Observed.Pass
	if s.Wrote && s.Ruling.Step.Ends != (verdict.Pass{}) {
		pass = s.Ruling.Step.Ends
	}
	if pass.State == "" {
		return
	}
	for _, g := range s.Gates {
		if !g.IsOurs() || !slices.Contains(s.Ruling.Observed.HeldBy, g.Name) {
			continue
		}
		last := g.Object.Status.LastTransition
		if began := cmp.Or(pass.Since, pass.Ended); last == nil || last.State != v1alpha1.StateOpened && last.At.After(began) {
			continue // the pass predates the hold by this Gate
		}
		if passes.Record(g.Object.UID, key, pass) {
			queues.GateSoon(summary.KeyFor(g.Object).NamespacedName)
		}
	}
}
