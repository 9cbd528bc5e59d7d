package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// IsOpen returns whether a Gate is open, as far as its status says. Its own reconciliation
// may be behind: a spec that nobody has looked at yet opens nothing, and a close that is
// due counts as done. A suspended Gate stays as it is.
func IsOpen(g *v1alpha1.Gate, now time.Time) bool {
	next, current := g.Status.NextTransition, g.Status.ObservedGeneration == g.Generation
	closes := next != nil && next.State == v1alpha1.StateClosed && !next.At.After(now)
	return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition) && (g.Spec.Suspend || current && !closes)
}

// ReportedOpen returns whether a Gate is open beyond doubt, for callers who act on it once
// and cannot be held afterwards. IsOpen is not enough for them. A Gate may be closed if
// nobody reconciles it, if it does not compile, if it is being deleted, or if nobody has
// looked at a request to close it.
func ReportedOpen(g *v1alpha1.Gate, now time.Time) bool {
	if g.Spec.Suspend || !g.DeletionTimestamp.IsZero() || !IsOpen(g, now) {
		return false
	}
	if meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition).Reason == v1alpha1.InvalidSpecReason {
		return false
	}
	return !ledger.CloseRequested(g)
}
