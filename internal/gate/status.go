package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// Status returns the complete status after a decision. If the progress is nil, the status keeps the previous progress.
func (r *Resolution) Status(p *Progress) v1alpha1.GateStatus {
	if p == nil {
		return r.decided.Status
	}
	g := *r.decided
	g.Status.Conditions = slices.Clone(g.Status.Conditions)
	p.record(r, &g)
	g.Status.ObservedGeneration = g.Generation
	stampConditions(r.snapshot.Gate, &g, r.At)
	return g.Status
}

// Decided returns the Gate with the status after the decision, without the new progress of its targets.
func (r *Resolution) Decided() *v1alpha1.Gate { return r.decided }

// record computes the status after a decision, and sets Changed, AffectsTargets and IsNew.
func (r *Resolution) record() {
	before, g := r.snapshot.Gate, *r.gate
	s := &g.Status
	s.Conditions = slices.Clone(s.Conditions)
	s.NextTransition, s.RequestedAt, s.ResetToDefaultAt = r.Next, r.RequestedAt, r.ResetToDefaultAt
	s.Overlays = withSince(r.Overlays, before.Status.Overlays, r.At)
	r.recordConditions(&g)
	s.Exceptions = r.snapshot.WithGate(&g).exceptionRecords(r.At)
	r.Changed = stateChanged(before, &g)
	hasTransition := r.Changed || r.missed()
	s.LastTransition = lastTransition(&g, r.Decision, r.At, hasTransition)
	s.History = history(before, &g, r.Decision, r.Handled, r.At, hasTransition)
	if r.State == v1alpha1.StateOpened && HasWaves(&g) && !g.Audits() && HasNewProceed(&g, s.Release) {
		r.Proceeds, s.Release = true, withProceed(&g, r.At)
	}
	stampConditions(before, &g, r.At)
	r.AffectsTargets = AffectsTargets(before, &g) || r.Err == nil && !IsCurrent(before)
	r.IsNew = r.AffectsTargets || r.Changed || !IsCurrent(before) || len(r.Handled) > 0 || r.Proceeds || before.Status.Memory.LastHandledLine != s.Memory.LastHandledLine
	if r.IsNew {
		r.recordEffect(&g)
	}
	r.decided = &g
}

// recordConditions sets the condition Opened. If the spec is invalid, it also sets Stalled and Ready; otherwise, it removes Stalled.
func (r *Resolution) recordConditions(g *v1alpha1.Gate) {
	mark := conditions.MarkFalse
	if r.State == v1alpha1.StateOpened {
		mark = conditions.MarkTrue
	}
	mark(g, v1alpha1.OpenedCondition, r.Reason, "%s", r.Message)
	if len(r.Errors) == 0 {
		conditions.Delete(g, meta.StalledCondition)
		return
	}
	cause := r.Errors.ToAggregate()
	conditions.MarkStalled(g, v1alpha1.InvalidSpecReason, "%s", cause)
	conditions.MarkFalse(g, meta.ReadyCondition, v1alpha1.InvalidSpecReason, "%s", cause)
}

// recordEffect sets the conditions of a new decision until its progress is known. It sets observedGeneration only if nothing prevented the
// Gate from opening. Otherwise, both clocks must be read again, even after a crash.
func (r *Resolution) recordEffect(g *v1alpha1.Gate) {
	before := r.snapshot.Gate
	if !conditions.IsStalled(g) && (r.Changed || !IsCurrent(before)) { // Reconciling and Stalled exclude each other
		conditions.MarkReconciling(g, meta.ProgressingReason, "%s", startText(g, r.State))
	}
	if r.Err != nil {
		conditions.MarkFalse(g, meta.ReadyCondition, v1alpha1.TimeUnknownReason, "%s", r.Err)
	} else {
		g.Status.ObservedGeneration = g.Generation
	}
	stampConditions(before, g, r.At)
}

// missed returns whether the Gate changed its state and changed it back since the last decision. A planned opening does not count while the
// time is unknown or a dependency is not ready, because the Gate stayed closed.
func (r *Resolution) missed() bool {
	return r.Reason != v1alpha1.TimeUnknownReason && r.Reason != v1alpha1.DependencyNotReadyReason && missedTransition(r.snapshot.Gate, r.State, r.At)
}

// stateChanged returns whether the state of a Gate changed, or was decided for the first time.
func stateChanged(before, after *v1alpha1.Gate) bool {
	was := conditions.Get(before, v1alpha1.OpenedCondition)
	return was == nil || was.Status != conditions.Get(after, v1alpha1.OpenedCondition).Status
}

// AffectsTargets returns whether the targets of a Gate must be reconciled after a change of the Gate.
func AffectsTargets(before, after *v1alpha1.Gate) bool {
	return before.UID != after.UID || before.Generation != after.Generation || before.Status.ObservedGeneration != after.Status.ObservedGeneration ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		ledger.CloseRequested(before) != ledger.CloseRequested(after) ||
		!equality.Semantic.DeepEqual(conditions.Get(before, v1alpha1.OpenedCondition), conditions.Get(after, v1alpha1.OpenedCondition)) ||
		!equality.Semantic.DeepEqual(before.Status.NextTransition, after.Status.NextTransition) ||
		!equality.Semantic.DeepEqual(before.Status.LastTransition, after.Status.LastTransition) ||
		!equality.Semantic.DeepEqual(before.Status.Overlays, after.Status.Overlays)
}

// IsCurrent returns whether the status is for the current generation of the spec.
func IsCurrent(g *v1alpha1.Gate) bool { return g.Generation == g.Status.ObservedGeneration }

// stampConditions sets the transition times of conditions: to now if a condition has changed, and to its previous time otherwise.
func stampConditions(before, after *v1alpha1.Gate, now time.Time) {
	for i := range after.Status.Conditions {
		is := &after.Status.Conditions[i]
		was := conditions.Get(before, is.Type)
		if was != nil && was.Status == is.Status && was.Reason == is.Reason && was.Message == is.Message {
			is.LastTransitionTime = was.LastTransitionTime
		} else {
			is.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		}
	}
}

// SuspendedStatus returns the status of a suspended Gate, which keeps the last decision. It removes Reconciling, and sets Ready if it was
// never set. Otherwise, clients that wait for the Gate, such as a Kustomization with wait: true, would never consider it ready.
func SuspendedStatus(before *v1alpha1.Gate, now time.Time) v1alpha1.GateStatus {
	g := *before
	g.Status.Conditions = slices.Clone(g.Status.Conditions)
	g.Status.ObservedGeneration = g.Generation
	conditions.Delete(&g, meta.ReconcilingCondition)
	if !conditions.Has(&g, meta.ReadyCondition) {
		conditions.MarkTrue(&g, meta.ReadyCondition, meta.SuspendedReason, msgSuspended)
	}
	stampConditions(before, &g, now)
	return g.Status
}
