package promotion

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
)

// report writes the conditions.
func (l *look) report(want string, moves bool) {
	s := &l.g.Status
	approvedCondition := l.approved(want, moves)
	l.set(approvedCondition)
	l.set(l.ready(approvedCondition))
	if l.fault.stalls {
		l.set(metav1.Condition{Type: fluxmeta.StalledCondition, Status: metav1.ConditionTrue, Reason: l.fault.reason, Message: l.fault.message})
	} else {
		meta.RemoveStatusCondition(&s.Conditions, fluxmeta.StalledCondition)
	}
	s.ObservedGeneration = l.g.Generation
	if v, ok := fluxmeta.ReconcileAnnotationValue(l.g.Annotations); ok {
		s.SetLastHandledReconcileRequest(v)
	}
}

// suspended keeps the status as it was. A GatedSource that was created with spec.suspend gets a condition Ready.
func (l *look) suspended() {
	l.g.Status.ObservedGeneration = l.g.Generation
	if meta.FindStatusCondition(l.g.Status.Conditions, fluxmeta.ReadyCondition) == nil {
		l.set(metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: fluxmeta.SuspendedReason,
			Message: "GatedSource is suspended: it pins nothing until spec.suspend is removed"})
	}
}

func (l *look) set(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = l.g.Generation, metav1.NewTime(l.Now)
	meta.SetStatusCondition(&l.g.Status.Conditions, c)
}

// approved returns the condition that says whether something waits, and for what.
func (l *look) approved(want string, moves bool) metav1.Condition {
	s, g := &l.g.Status, l.g
	c := metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionFalse}
	switch {
	case l.fault != (fault{}):
		c.Reason, c.Message = l.fault.reason, l.fault.message
	case g.Spec.Revision != "" && want == "":
		c.Reason = v1alpha1.RevisionNotSeenReason
		c.Message = fmt.Sprintf("spec.revision '%s' is none of the revisions that were seen: it waits until %s has it%s.", g.Spec.Revision, l.original(), l.stopped())
	case moves && l.Gates.Open:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, fmt.Sprintf("Promoting '%s'.", want)
	case moves && l.Gates.Reason == "":
		if was := meta.FindStatusCondition(s.Conditions, v1alpha1.ApprovedCondition); was != nil && was.Status == metav1.ConditionFalse {
			return *was // it decides within milliseconds
		}
		c.Reason, c.Message = v1alpha1.GateClosedReason, fmt.Sprintf("'%s' waits. A gate that governs it has not decided yet.", want)
	case moves:
		c.Reason, c.Message = l.Gates.Reason, fmt.Sprintf("'%s' waits. %s", want, l.Gates.Message)
	case s.Pending != nil:
		c.Reason, c.Message = v1alpha1.WaitingApprovalReason, l.waiting()
	case g.Spec.Revision != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.PinnedInSpecReason, fmt.Sprintf("spec.revision pins '%s'.", s.Pinned.Revision)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.UpToDateReason, fmt.Sprintf("'%s' is the newest revision.", s.Pinned.Revision)
	}
	if c.Reason != v1alpha1.WaitingApprovalReason { // which ends with a command
		c.Message += l.unseen()
	}
	c.Message += l.refused()
	return c
}

// stopped says that the source that is followed is suspended. It is empty if it is not.
func (l *look) stopped() string {
	if !isSuspended(l.Original.Spec) {
		return ""
	}
	return ", which is suspended"
}

// unseen says that newer revisions are not seen, because the source that is followed cannot be fetched. It is empty if it can.
func (l *look) unseen() string {
	if l.fault != (fault{}) || !l.Original.Failed {
		return ""
	}
	return fmt.Sprintf(" %s cannot be fetched (%s): what is newer is not seen until it can.", l.original(), l.Original.Ready.Reason)
}

// waiting says which approvals are missing, and how to give one.
func (l *look) waiting() string {
	g, revision := l.g, l.g.Status.Pending.Revision
	by, note := approvers(g, revision), ""
	if len(by) > 0 {
		note = " by " + strings.Join(by, ", ")
	}
	if gated := g.Status.Pinned; gated != nil && same(l.kind, gated.Revision, revision) {
		note += ", because the spec of the source has changed"
	}
	return fmt.Sprintf("'%s' waits for approval: %d of %d%s.%s To approve it: kubectl -n %s annotate gatedsource/%s %s=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ),%s%s",
		revision, len(by), g.RequiredApprovals(), note, l.unseen(), g.Namespace, g.Name, v1alpha1.ApproveRequestedAtAnnotation, stampOf(g), annotations.ShellQuote(revision))
}

// ready returns the condition that says whether the pinned source is as it should be.
func (l *look) ready(approved metav1.Condition) metav1.Condition {
	gated, p := l.g.Status.Pinned, l.Pinned
	c := metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse}
	switch {
	case l.fault != (fault{}):
		c.Reason, c.Message = l.fault.reason, l.fault.message
		if gated != nil && !l.fault.stalls {
			c.Message += fmt.Sprintf(" The pin stays at '%s'.", gated.Revision)
		}
	case l.step.Write != nil, l.step.Again, p == nil && gated != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Writing "+l.pinned()+"."
	case gated == nil:
		c.Reason, c.Message = approved.Reason, "Nothing is pinned yet. "+approved.Message
	case p.Failed:
		c.Reason, c.Message = p.Ready.Reason, l.unfetched()
	case p.Current && p.Revision != "" && same(l.kind, p.Revision, gated.Revision) && p.Ready != nil && p.Ready.Status == metav1.ConditionTrue:
		c.Status, c.Reason = metav1.ConditionTrue, fluxmeta.SucceededReason
		c.Message = fmt.Sprintf("%s is pinned to '%s'%s.", l.pinned(), gated.Revision, l.behind())
	case isSuspended(p.Spec):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.SuspendedReason, fmt.Sprintf("%s is suspended, and does not fetch '%s'.", l.pinned(), gated.Revision)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, fmt.Sprintf("%s is being fetched at '%s'.", l.pinned(), gated.Revision)
	}
	return c
}

// behind says how many revisions are newer than the pinned one.
func (l *look) behind() string {
	switch n := l.g.Status.Waiting; n {
	case 0:
		return ""
	case 1:
		return ", 1 newer revision waits"
	default:
		return fmt.Sprintf(", %d newer revisions wait", n)
	}
}

// unfetched says what it means that the pinned source cannot be fetched.
func (l *look) unfetched() string {
	gated, p := l.g.Status.Pinned, l.Pinned
	runs := "The running revision stays, but its drift is not corrected: source-controller has no copy"
	if p.Revision != "" && same(l.kind, p.Revision, gated.Revision) {
		runs = "The running revision stays, and its drift is corrected only until source-controller loses its copy"
	} else if p.Revision != "" {
		runs = fmt.Sprintf("The running revision stays '%s'", p.Revision)
	}
	return fmt.Sprintf("%s cannot be fetched at '%s': %s. %s. If the source no longer has this revision, promote another one.",
		l.pinned(), gated.Revision, strings.TrimSuffix(p.Ready.Message, "."), runs)
}
