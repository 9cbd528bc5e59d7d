package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// IsOpen returns whether a Gate is open according to its status. The status may be out of date, so a Gate with a new spec is not open until
// it is reconciled, and a close that is due counts. A suspended Gate keeps its state.
func IsOpen(g *v1alpha1.Gate, now time.Time) bool {
	next, current := g.Status.NextTransition, g.Status.ObservedGeneration == g.Generation
	closes := next != nil && next.State == v1alpha1.StateClosed && !next.At.After(now)
	return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition) && (g.Spec.Suspend || current && !closes)
}

// ReportedOpen returns whether a Gate is certainly open. Use it before irreversible steps: unlike IsOpen, it returns false for a Gate that
// is suspended, invalid or being deleted, or that has an unhandled close request.
func ReportedOpen(g *v1alpha1.Gate, now time.Time) bool {
	if g.Spec.Suspend || !g.DeletionTimestamp.IsZero() || !IsOpen(g, now) {
		return false
	}
	if meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition).Reason == v1alpha1.InvalidSpecReason {
		return false
	}
	return !ledger.CloseRequested(g)
}
