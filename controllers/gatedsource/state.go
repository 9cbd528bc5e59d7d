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

// shardInterval is the interval at which a GatedSource with a waiting revision is reconciled if there are shards, because this process
// gets no events for the Gates of other shards.
const shardInterval = time.Minute

// promotionState is a GatedSource with the inputs of a round, and the step that was decided on.
type promotionState struct {
	// object is the GatedSource that was read. before and after are typed copies with the status before and after the decision.
	object        *target.Object
	before, after *v1alpha1.GatedSource
	// original and pinned are the sources, nil if they do not exist.
	original, pinned *unstructured.Unstructured
	gates            []verdict.Gate
	input            promotion.Input
	step             promotion.Step
	// waits is true if the GatedSource waits for a release slot.
	waits bool
	now   time.Time
	view.Recheck
	// failure is the reason why the step was not taken, nil if it was taken.
	failure *summary.Failure
}

// decide sets the next step and the status.
func (s *promotionState) decide(in promotion.Input) {
	s.after = s.before.DeepCopy()
	s.step = promotion.Decide(s.after, in)
}

// failed records why the step was not taken.
func (s *promotionState) failed(reason string, err error) (*promotionState, error) {
	s.failure = &summary.Failure{Reason: reason, Message: err.Error()}
	return s, err
}

// isPending returns whether a revision waits.
func (s *promotionState) isPending() bool { return s.after != nil && s.after.Status.Pending != nil }

// current returns the GatedSource with the status after the decision.
func (s *promotionState) current() *target.Object {
	obj := &target.Object{Unstructured: *s.object.DeepCopy()}
	if status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&s.after.Status); err == nil {
		obj.Object["status"] = status
	}
	return obj
}

// entries returns the outcome for each Gate that this process reconciles. For Gates with mode Audit, the outcome is Other, see audit.
func (s *promotionState) entries() []summary.Entry {
	var entries []summary.Entry
	for _, g := range s.gates {
		counts := g.Governs || g.Audits
		if !g.IsOurs() || !counts && s.failure == nil {
			continue
		}
		e := summary.Entry{Gate: summary.KeyFor(g.Object), Failure: s.failure, Uncounted: !counts, Overlaid: counts && g.Overlaid, Pending: counts && g.Effect == verdict.Undecided}
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

// audit returns the outcome for a Gate with mode Audit as if its mode were Enforce. While the Gate is undecided, it returns
// before.
func (s *promotionState) audit(g verdict.Gate, before summary.Outcome) summary.Outcome {
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

// member returns the GatedSource as a target of a Gate that releases in waves.
func (s *promotionState) member(g verdict.Gate) waves.Member {
	m := waves.Member{Matches: verdict.WavesOf(g.Object, &s.object.Unstructured)}
	switch isHeld := s.isPending() && !s.input.Gates.Open; {
	case s.waits:
	case isHeld && s.failure != nil:
		m.Message = s.failure.Message
	case isHeld && g.Effect == verdict.Open:
		m.Phase, m.Message = waves.Blocked, "held by "+strings.Join(s.closedGates(), ", ")
	case isHeld:
	case !s.isPending() && len(verdict.Judge(verdict.Observed{}, s.gates).Holders) > 0:
		m.Phase = waves.Skipped
	default:
		m.Phase, m.Message = rollout.PhaseFor(s.current())
	}
	return m
}

// closedGates returns the names of the Gates that keep the pin in place, sorted.
func (s *promotionState) closedGates() []string {
	var names []string
	for _, g := range s.gates {
		if !g.LetsActivate() && g.Effect != verdict.Undecided {
			names = append(names, g.Name)
		}
	}
	slices.Sort(names)
	return names
}

// nextCheck returns when to reconcile the GatedSource again without an event, zero for never.
func (s *promotionState) nextCheck(sharded bool) time.Time {
	next := s.Recheck
	switch {
	case !sharded && slices.ContainsFunc(s.gates, func(g verdict.Gate) bool { return g.Effect == verdict.OtherShard }): // created just now
		next.NotLaterThan(s.now.Add(view.CacheDelay))
	case s.isPending() && sharded || s.input.Older != "": // the older GatedSource may be deleted
		next.NotLaterThan(s.now.Add(shardInterval))
	case s.isPending() && slices.ContainsFunc(s.gates, verdict.Gate.IsRefused):
		next.NotLaterThan(s.now.Add(verdict.MissingInterval))
	}
	return next.At
}
