package gate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Governed is what a Gate governs.
type Governed struct {
	// Count is the number of targets, and Partial says that there may be more: not all of them are read yet.
	Count   int
	Partial bool
	// Held says that the name of the Gate is on an object.
	Held bool
}

// IsRefused returns whether a Gate governs more than spec.maxTargets allows by its status: it does not close, or it is closed and
// holds nothing more.
func IsRefused(g *v1alpha1.Gate) bool {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	return opened != nil && opened.Reason == v1alpha1.TooManyTargetsReason
}

// IsLimited returns whether a decision on a Gate, which was as it is in before, depends on how many targets the Gate governs: it closes,
// or it is closed and somebody has changed what it governs. The targets of a closed Gate may grow by new objects, which are held.
func (d Decision) IsLimited(before *v1alpha1.Gate) bool {
	return d.State == v1alpha1.StateClosed && before.Spec.MaxTargets != nil && (IsRefused(before) ||
		!meta.IsStatusConditionFalse(before.Status.Conditions, v1alpha1.OpenedCondition) || before.Generation != before.Status.ObservedGeneration)
}

// Limit returns a decision to close as it is if the Gate governs more than spec.maxTargets allows. If it was open, it stays open. If it
// was closed, it stays closed, and holds nothing more. A Gate about which nobody has decided holds nothing that somebody could miss,
// unless its name is on something.
//
// If not all targets are read, those that are count: a Gate closes rather than to wait for the others, but it does not close because
// those that were too many are not read yet.
func (d Decision) Limit(before *v1alpha1.Gate, n Governed) Decision {
	if !d.IsLimited(before) {
		return d
	}
	was := meta.FindStatusCondition(before.Status.Conditions, v1alpha1.OpenedCondition)
	tooMany := n.Count > int(*before.Spec.MaxTargets)
	if !tooMany && (!n.Partial || !IsRefused(before)) {
		return d
	}
	due := strings.TrimPrefix(d.Message, "Gate ")
	d.Reason, d.By = v1alpha1.TooManyTargetsReason, ""
	if opened := was != nil && was.Status == metav1.ConditionTrue; opened || was == nil && !n.Held {
		if d.Next != nil {
			d.Recheck = earlier(d.Recheck, d.Next.At.Time)
		}
		d.State, d.Next = v1alpha1.StateOpened, nil
		d.Message = "Gate stays opened although it is due to close (" + due + ")"
	} else {
		d.Message = "Gate stays closed (" + due + "), what it holds stays held, and nothing else is held"
	}
	d.Message += fmt.Sprintf(": it governs %d targets, and spec.maxTargets allows %d. Raise spec.maxTargets or take targets out.", n.Count, *before.Spec.MaxTargets)
	if !tooMany {
		d.Message = was.Message
	}
	return d
}

// IsRefused returns whether the Gate governs more than spec.maxTargets allows.
func (d Decision) IsRefused() bool { return d.Reason == v1alpha1.TooManyTargetsReason }
