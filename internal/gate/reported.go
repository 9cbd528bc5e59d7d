package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
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
	return !CloseRequested(g)
}

// CloseRequested returns whether a Gate has a close request that the controller has not handled, in its annotation or in a line of
// v1alpha1.UnhandledAnnotation.
func CloseRequested(g *v1alpha1.Gate) bool {
	return len(pending(g, v1alpha1.RequestClose, time.Time{})) > 0
}

// DecidedBy returns the request behind what the status of a Gate says at an instant, nil
// if there is none.
func DecidedBy(g *v1alpha1.Gate, now time.Time) *Request {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	if opened == nil {
		return nil
	}
	return courseAt(g, now).deciding(schedule.Reason(opened.Reason))
}

// RequestsAt returns the accepted requests of a Gate that are in force at an instant, and those that wait for approval or are planned then.
// Their until is when they end unless somebody ends them, and that of those that wait is when they are dropped.
func RequestsAt(g *v1alpha1.Gate, now time.Time) (inForce, planned []v1alpha1.AcceptedRequest) {
	c := courseAt(g, now)
	spans := c.closes
	if c.open != nil {
		spans = append(spans, c.open)
	}
	for _, s := range spans {
		if s.lasts(now) {
			keepEnd(&s.AcceptedRequest, s.end)
			inForce = append(inForce, s.AcceptedRequest)
		}
	}
	for _, r := range c.unapproved(now) {
		if r.State == v1alpha1.RequestWaiting {
			planned = append(planned, r)
		}
	}
	for _, r := range c.planned {
		keepEnd(&r, c.endOf(&r))
		planned = append(planned, r)
	}
	return inForce, planned
}
