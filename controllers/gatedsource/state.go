package gatedsource

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/rollout"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// shardInterval is the interval at which a GatedSource with a pending revision is reconciled if there are shards: the events of Gates of
// other shards do not arrive here.
const shardInterval = time.Minute

// PromotionState is a GatedSource as one round has read it, and the step that follows.
type PromotionState struct {
	// Object is the GatedSource that was read. before and after are typed copies, with the status before and after the decision.
	Object        *target.Object
	before, After *v1alpha1.GatedSource
	// original and pinned are the sources, nil if they do not exist.
	original, pinned *unstructured.Unstructured
	Gates            []verdict.Gate
	Input            promotion.Input
	step             promotion.Step
	// Waits means that the GatedSource waits for a release slot.
	Waits bool
	Now   time.Time
	view.Recheck
	// failure is why the step was not taken, nil if it was.
	failure *summary.Failure
}

// decide decides the next step and the status, from an input.
func (s *PromotionState) decide(in promotion.Input) {
	s.After = s.before.DeepCopy()
	s.step = promotion.Decide(s.After, in)
}

// Failed records why the step was not taken.
func (s *PromotionState) Failed(reason string, err error) (*PromotionState, error) {
	s.failure = &summary.Failure{Reason: reason, Message: err.Error()}
	return s, err
}

// isPending returns whether a revision waits.
func (s *PromotionState) isPending() bool { return s.After != nil && s.After.Status.Pending != nil }

// current returns the GatedSource with the status after the decision.
func (s *PromotionState) current() *target.Object {
	obj := &target.Object{Unstructured: *s.Object.DeepCopy()}
	if status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.After.Status); err == nil {
		obj.Object["status"] = status
	}
	return obj
}

// Entries returns the outcome for each of the Gates that this process reconciles. Those with mode Audit count as Other, see audit.
func (s *PromotionState) Entries() []summary.Entry {
	var entries []summary.Entry
	for _, g := range s.Gates {
		counts := g.Governs || g.Audits
		if !g.IsOurs() || !counts && s.failure == nil {
			continue
		}
		e := summary.Entry{Gate: summary.KeyFor(g.Object), Failure: s.failure, Uncounted: !counts, Pending: counts && g.Effect == verdict.Undecided}
		switch {
		case !counts || g.Effect != verdict.Closed || s.failure != nil && s.failure.Reason == v1alpha1.WriteFailedReason:
		case s.isPending():
			e.Outcome = summary.Held
		default:
			e.Outcome = summary.Exempt
		}
		entries = append(entries, e)
	}
	return entries
}

// audit returns the outcome if a Gate with mode Audit enforced. Until the Gate has decided, that is the outcome before.
func (s *PromotionState) audit(g verdict.Gate, before summary.Outcome) summary.Outcome {
	switch {
	case g.Would == verdict.Open:
		return summary.Other
	case g.Would != verdict.Closed:
		return before
	case s.isPending():
		return summary.WouldHold
	}
	return summary.Exempt
}

// Member returns the GatedSource as a target of a Gate that releases in waves.
func (s *PromotionState) Member(g verdict.Gate) waves.Member {
	m := waves.Member{Matches: verdict.WavesOf(g.Object, &s.Object.Unstructured)}
	switch isHeld := s.isPending() && !s.Input.Gates.Open; {
	case s.Waits:
	case isHeld && s.failure != nil:
		m.Message = s.failure.Message
	case isHeld && g.Effect == verdict.Open:
		m.Phase, m.Message = waves.Blocked, "held by "+strings.Join(s.closedGates(), ", ")
	case isHeld:
	case !s.isPending() && len(verdict.Judge(verdict.Observed{}, s.Gates).Holders) > 0:
		m.Phase = waves.Skipped
	default:
		m.Phase, m.Message = rollout.PhaseFor(s.current())
	}
	return m
}

// closedGates returns the names of the Gates that keep the pin where it is, sorted.
func (s *PromotionState) closedGates() []string {
	var names []string
	for _, g := range s.Gates {
		if !g.LetsActivate() {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return names
}

// NextCheck returns when to reconcile the GatedSource again without an event, zero for never.
func (s *PromotionState) NextCheck(sharded bool) time.Time {
	next := s.Recheck
	switch {
	case slices.ContainsFunc(s.Gates, func(g verdict.Gate) bool { return g.Effect == verdict.OtherShard }):
		next.NotLaterThan(s.Now.Add(view.CacheDelay))
	case s.isPending() && sharded || s.Input.Older != "": // the older one may be deleted
		next.NotLaterThan(s.Now.Add(shardInterval))
	case s.isPending() && slices.ContainsFunc(s.Gates, verdict.Gate.IsRefused):
		next.NotLaterThan(s.Now.Add(verdict.MissingInterval))
	}
	return next.At
}
