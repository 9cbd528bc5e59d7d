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

// suspended keeps the status as it was. A GatedSource that was created with spec.suspend gets a condition Ready.
func (d *decision) suspended() {
	d.g.Status.ObservedGeneration = d.g.Generation
	if meta.FindStatusCondition(d.g.Status.Conditions, fluxmeta.ReadyCondition) == nil {
		d.set(metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionTrue, Reason: fluxmeta.SuspendedReason,
			Message: "GatedSource is suspended: it pins nothing until spec.suspend is removed"})
	}
}

func (d *decision) set(c metav1.Condition) {
	c.ObservedGeneration, c.LastTransitionTime = d.g.Generation, metav1.NewTime(d.Now)
	meta.SetStatusCondition(&d.g.Status.Conditions, c)
}

// approved returns the condition that says whether something waits, and for what.
func (d *decision) approved(want string, moves bool) metav1.Condition {
	s, g := &d.g.Status, d.g
	c := metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionFalse}
	switch {
	case d.fault != (fault{}):
		c.Reason, c.Message = d.fault.reason, d.fault.message
	case g.Spec.Revision != "" && want == "":
		c.Reason = v1alpha1.RevisionNotSeenReason
		c.Message = fmt.Sprintf("spec.revision '%s' is none of the revisions that were seen: it waits until %s has it%s.", g.Spec.Revision, d.original(), d.stopped())
	case moves && d.Gates.Open:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, fmt.Sprintf("Promoting '%s'.", want)
	case moves && d.Gates.Reason == "":
		if was := meta.FindStatusCondition(s.Conditions, v1alpha1.ApprovedCondition); was != nil && was.Status == metav1.ConditionFalse {
			return *was // it decides within milliseconds
		}
		c.Reason, c.Message = v1alpha1.GateClosedReason, fmt.Sprintf("'%s' waits. A gate that governs it has not decided yet.", want)
	case moves:
		c.Reason, c.Message = d.Gates.Reason, fmt.Sprintf("'%s' waits. %s", want, d.Gates.Message)
	case s.Pending != nil:
		c.Reason, c.Message = v1alpha1.WaitingApprovalReason, d.waiting()
	case g.Spec.Revision != "":
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.PinnedInSpecReason, fmt.Sprintf("spec.revision pins '%s'.", s.Pinned.Revision)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.UpToDateReason, fmt.Sprintf("'%s' is the newest revision.", s.Pinned.Revision)
	}
	if c.Reason != v1alpha1.WaitingApprovalReason { // which ends with a command
		c.Message += d.unseen()
	}
	c.Message += d.refused()
	return c
}

// stopped says that the source that is followed is suspended. It is empty if it is not.
func (d *decision) stopped() string {
	if !isSuspended(d.Original.Spec) {
		return ""
	}
	return ", which is suspended"
}

// unseen says that newer revisions are not seen, because the source that is followed cannot be fetched. It is empty if it can.
func (d *decision) unseen() string {
	if d.fault != (fault{}) || !d.Original.Failed {
		return ""
	}
	return fmt.Sprintf(" %s cannot be fetched (%s): what is newer is not seen until it can.", d.original(), d.Original.Ready.Reason)
}

// waiting says which approvals are missing, and how to give one.
func (d *decision) waiting() string {
	g, revision := d.g, d.g.Status.Pending.Revision
	by, note := approvers(g, revision), ""
	if len(by) > 0 {
		note = " by " + strings.Join(by, ", ")
	}
	if gated := g.Status.Pinned; gated != nil && same(d.kind, gated.Revision, revision) {
		note += ", because the spec of the source has changed"
	}
	return fmt.Sprintf("'%s' waits for approval: %d of %d%s.%s To approve it: kubectl -n %s annotate gatedsource/%s %s=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ),%s%s",
		revision, len(by), g.RequiredApprovals(), note, d.unseen(), g.Namespace, g.Name, v1alpha1.ApproveRequestedAtAnnotation, stampOf(g), annotations.ShellQuote(revision))
}

// ready returns the condition that says whether the pinned source is as it should be.
func (d *decision) ready(approved metav1.Condition) metav1.Condition {
	gated, p := d.g.Status.Pinned, d.Pinned
	c := metav1.Condition{Type: fluxmeta.ReadyCondition, Status: metav1.ConditionFalse}
	switch {
	case d.fault != (fault{}):
		c.Reason, c.Message = d.fault.reason, d.fault.message
		if gated != nil && !d.fault.stalls {
			c.Message += fmt.Sprintf(" The pin stays at '%s'.", gated.Revision)
		}
	case d.step.Write != nil, d.step.Again, p == nil && gated != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, "Writing "+d.pinned()+"."
	case gated == nil:
		c.Reason, c.Message = approved.Reason, "Nothing is pinned yet. "+approved.Message
	case p.Failed:
		c.Reason, c.Message = p.Ready.Reason, d.unfetched()
	case p.Current && p.Revision != "" && same(d.kind, p.Revision, gated.Revision) && p.Ready != nil && p.Ready.Status == metav1.ConditionTrue:
		c.Status, c.Reason = metav1.ConditionTrue, fluxmeta.SucceededReason
		c.Message = fmt.Sprintf("%s is pinned to '%s'%s.", d.pinned(), gated.Revision, d.behind())
	case isSuspended(p.Spec):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.SuspendedReason, fmt.Sprintf("%s is suspended, and does not fetch '%s'.", d.pinned(), gated.Revision)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, fluxmeta.ProgressingReason, fmt.Sprintf("%s is being fetched at '%s'.", d.pinned(), gated.Revision)
	}
	return c
}

// behind says how many revisions are newer than the pinned one.
func (d *decision) behind() string {
	switch n := d.g.Status.Waiting; n {
	case 0:
		return ""
	case 1:
		return ", 1 newer revision waits"
	default:
		return fmt.Sprintf(", %d newer revisions wait", n)
	}
}

// unfetched says what it means that the pinned source cannot be fetched.
func (d *decision) unfetched() string {
	gated, p := d.g.Status.Pinned, d.Pinned
	runs := "The running revision stays, but its drift is not corrected: source-controller has no copy"
	if p.Revision != "" && same(d.kind, p.Revision, gated.Revision) {
		runs = "The running revision stays, and its drift is corrected only until source-controller loses its copy"
	} else if p.Revision != "" {
		runs = fmt.Sprintf("The running revision stays '%s'", p.Revision)
	}
	return fmt.Sprintf("%s cannot be fetched at '%s': %s. %s. If the source no longer has this revision, promote another one.",
		d.pinned(), gated.Revision, strings.TrimSuffix(p.Ready.Message, "."), runs)
}
