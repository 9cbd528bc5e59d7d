package target

import (
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

func (r *Reconciler) rolloutRecorder() rollout.Recorder {
	return rollout.Recorder{Rollouts: r.Rollouts, Queues: r.Queues}
}

// member returns the member that represents a target in a Gate's release in waves.
func (s *Result) member(g verdict.Gate) waves.Member {
	obj, step := s.Ruling.Object, s.Ruling.Step
	m := waves.Member{Matches: verdict.WavesOf(g.Object, &obj.Unstructured), Needs: target.Needs(obj)}
	held := s.Ruling.Observed.State != target.Free && s.Ruling.Observed.State != target.SuspendedByOthers
	switch {
	case s.Ruling.Wait == verdict.ForSlot:
	case s.Ruling.Wait != verdict.NoWait:
		m.Message = msgLocked
	case held && s.Failure != nil && !s.Wrote:
		m.Message = s.Failure.Message
	case step.Outcome == verdict.Passing && g.Effect == verdict.Open:
		m.Phase, m.Message = waves.Blocked, msgHeldBy+strings.Join(step.Names, ", ")+msgPassing
	case step.Outcome == verdict.Passing: // the target is held again after the pass
	case step.Hold && g.Effect == verdict.Open:
		others := slices.DeleteFunc(slices.Clone(step.Names), func(name string) bool { return name == g.Name })
		m.Phase, m.Message = waves.Blocked, msgHeldBy+strings.Join(others, ", ")
	case step.Hold:
	case step.Outcome == verdict.SuspendedByOthers || step.Outcome == verdict.Exempt:
		m.Phase = waves.Skipped
	case s.Wrote && s.Ruling.Releases():
		m.Phase = waves.Progressing
	default:
		m.Phase, m.Message = rollout.PhaseFor(obj)
	}
	return m
}
