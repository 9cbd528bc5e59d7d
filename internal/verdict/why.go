package verdict

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// until returns " until" and when a closed Gate opens, empty if that is unknown.
func (g Gate) until() string {
	at, _, ok := g.Opening()
	if !ok {
		return ""
	}
	return " until " + at.UTC().Format(time.RFC3339)
}

// why returns why a Gate is closed, empty if that is unknown.
func (g Gate) why(now time.Time) string {
	if g.Object == nil {
		return ""
	}
	if g.Object.Spec.Suspend {
		return msgWhySuspended
	}
	opened := meta.FindStatusCondition(g.Object.Status.Conditions, v1alpha1.OpenedCondition)
	if opened == nil || opened.Status != metav1.ConditionFalse {
		return ""
	}
	by := ""
	if last := g.Object.Status.LastTransition; last != nil {
		by = last.DecidedBy()
	}
	switch opened.Reason {
	case v1alpha1.CloseRequestedReason:
		return requested(ledger.DecidedBy(g.Object, now))
	case v1alpha1.ClosePeriodReason:
		return fmt.Sprintf("close period '%s'", by)
	case v1alpha1.ExceptionAppliesReason:
		return fmt.Sprintf("exception '%s'", by)
	default:
		return reasons[opened.Reason]
	}
}

// reasons maps the reasons of the condition Opened of a closed Gate to texts.
var reasons = map[string]string{
	v1alpha1.NotYetActiveReason:       msgNotYetActive,
	v1alpha1.ExpiredReason:            msgExpired,
	v1alpha1.OutsideOpenPeriodsReason: "outside its open periods",
	v1alpha1.DefaultReason:            "closed by default",
	v1alpha1.InvalidSpecReason:        "its spec is invalid",
	v1alpha1.DependencyNotReadyReason: "a dependency is not ready",
	v1alpha1.TimeUnknownReason:        "the API server does not return its time",
}

// requested describes the close request by, with its requester and reason. by is nil if the request is unknown.
func requested(by *ledger.Request) string {
	text := "closed on request"
	if by != nil && by.By != "" {
		text += " of " + by.By
	}
	if by != nil && by.Reason != "" {
		text += ": " + by.Reason
	}
	return text
}
