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

// report sets the conditions, the observed generation, and the last handled reconcile request.
func (d *decision) report(want string, moves bool) {
	s := &d.g.Status
	approvedCondition := d.approved(want, moves)
	d.set(approvedCondition)
	d.set(d.ready(approvedCondition))
	if d.fault.stalls {
		d.set(metav1.Condition{Type: fluxmeta.StalledCondition, Status: metav1.ConditionTrue, Reason: d.fault.reason, Message: d.fault.message})
	} else {
		meta.RemoveStatusCondition(&s.Conditions, fluxmeta.StalledCondition)
	}
	s.ObservedGeneration = d.g.Generation
	if v, ok := fluxmeta.ReconcileAnnotationValue(d.g.Annotations); ok {
		s.SetLastHandledReconcileRequest(v)
	}
}

// suspended only updates the observed generation. It adds the condition Ready if the GatedSource has none because it was created with
// spec.suspend.
func (d *decision) suspended() {
	d.g.Status.ObservedGeneration = d.g.Generation
	if meta.FindStatusCondition(d.g.Status.Conditions, fluxmeta.ReadyCondition) == nil {
		d.set(metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: fluxmeta.SuspendedReason,
			Message: msgSuspended})
	}
}

func (d *decision) set(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = d.g.Generation, metav1.NewTime(d.Now)
	meta.SetStatusCondition(&d.g.Status.Conditions, c)
}

// approved returns the condition Approved, which reports whether a revision waits, and for what.
func (d *decision) approved(want string, moves bool) metav1.Condition {
	s, g := &d.g.Status, d.g
	c := metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionFalse}
	switch {
	case isRollingBack(g):
		c.Status, c.Reason = metav1.ConditionUnknown, fluxmeta.ProgressingReason
		c.Message = fmt.Sprintf(msgRollingBack, s.Rollback.Revision, requestedBy(s.Rollback.RequestedBy, s.Rollback.Message))
	case d.fault != (fault{}):
		c.Reason, c.Message = d.fault.reason, d.fault.message
	case g.Spec.Revision != "" && want == "":
		c.Reason = v1alpha1.RevisionNotSeenReason
		c.Message = fmt.Sprintf(msgRevisionUnknown, g.Spec.Revision, d.original(), d.stopped())
	case moves && d.Gates.Open:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, fmt.Sprintf(msgPromoting, want)
	case moves && d.Gates.Reason == "":
		if was := meta.FindStatusCondition(s.Conditions, v1alpha1.ApprovedCondition); was != nil && was.Status == metav1.ConditionFalse {
			return *was // the Gate decides within milliseconds
		}
		c.Reason, c.Message = v1alpha1.GateClosedReason, fmt.Sprintf(msgUndecided, want)
	case moves:
		c.Reason, c.Message = d.Gates.Reason, fmt.Sprintf("'%s' waits. %s", want, d.Gates.Message)
	case s.Pending != nil:
		c.Reason, c.Message = v1alpha1.WaitingApprovalReason, d.waiting()
	case g.Spec.Revision != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.PinnedInSpecReason, fmt.Sprintf(msgPinnedInSpec, s.Pinned.Revision)
	case d.skips():
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.RolledBackReason, d.rolledBack()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.UpToDateReason, fmt.Sprintf(msgNewest, s.Pinned.Revision)
	}
	if c.Reason != v1alpha1.WaitingApprovalReason { // the message ends with a command
		c.Message += d.unseen()
	}
	c.Message += d.refused() + d.refusedRollback()
	return c
}

// stopped returns a clause for a suspended followed source, empty if the source is not suspended.
func (d *decision) stopped() string {
	if !isSuspended(d.Original.Spec) {
		return ""
	}
	return msgIsSuspended
}

// unseen returns a sentence for a followed source that cannot be fetched, so that newer revisions are unknown. It is empty if the source
// can be fetched.
func (d *decision) unseen() string {
	if d.fault != (fault{}) || !d.Original.Failed {
		return ""
	}
	return fmt.Sprintf(msgCannotFetch, d.original(), d.Original.Ready.Reason)
}

// waiting returns a message about the missing approvals, and how to approve.
func (d *decision) waiting() string {
	g, revision := d.g, d.g.Status.Pending.Revision
	by, note := approvers(g, revision), ""
	if len(by) > 0 {
		note = " by " + strings.Join(by, ", ")
	}
	if gated := g.Status.Pinned; gated != nil && same(d.kind, gated.Revision, revision) {
		note += msgSpecChanged
	}
	return fmt.Sprintf(msgWaitsForApproval,
		revision, len(by), g.RequiredApprovals(), note, d.unseen(), g.Namespace, g.Name, v1alpha1.ApproveRequestedAtAnnotation, stampOf(g), annotations.ShellQuote(revision))
}

// ready returns the condition Ready, which reports whether the pinned source is in the decided state.
func (d *decision) ready(approved metav1.Condition) metav1.Condition {
	gated, p := d.g.Status.Pinned, d.Pinned
	c := metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse}
	switch {
	case d.fault != (fault{}):
		c.Reason, c.Message = d.fault.reason, d.fault.message
		if gated != nil && !d.fault.stalls {
			c.Message += fmt.Sprintf(msgPinStays, gated.Revision)
		}
	case d.step.Write != nil, d.step.Again, p == nil && gated != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Writing "+d.pinned()+"."
	case gated == nil:
		c.Reason, c.Message = approved.Reason, msgNothingPinned+approved.Message
	case p.Failed:
		c.Reason, c.Message = p.Ready.Reason, d.unfetched()
	case p.Current && p.Revision != "" && same(d.kind, p.Revision, gated.Revision) && p.Ready != nil && p.Ready.Status == metav1.ConditionTrue:
		c.Status, c.Reason = metav1.ConditionTrue, fluxmeta.SucceededReason
		c.Message = fmt.Sprintf(msgPinned, d.pinned(), gated.Revision, d.behind())
	case isSuspended(p.Spec):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.SuspendedReason, fmt.Sprintf(msgPinnedSuspended, d.pinned(), gated.Revision)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, fmt.Sprintf(msgFetching, d.pinned(), gated.Revision)
	}
	return c
}

// behind returns a message about the number of revisions that are newer than the pinned one, empty if there are none.
func (d *decision) behind() string {
	switch n := d.g.Status.Waiting; n {
	case 0:
		return ""
	case 1:
		return msgOneNewer
	default:
		return fmt.Sprintf(msgManyNewer, n)
	}
}

// unfetched returns a message about a pinned source that cannot be fetched, and about the revision that stays in use.
func (d *decision) unfetched() string {
	gated, p := d.g.Status.Pinned, d.Pinned
	runs := msgStaysNoCopy
	if p.Revision != "" && same(d.kind, p.Revision, gated.Revision) {
		runs = msgStaysCopy
	} else if p.Revision != "" {
		runs = fmt.Sprintf(msgStays, p.Revision)
	}
	return fmt.Sprintf(msgPinnedUnfetched,
		d.pinned(), gated.Revision, strings.TrimSuffix(p.Ready.Message, "."), runs)
}
