package gatedsource

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	eventv1 "github.com/fluxcd/pkg/apis/event/v1"
	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// notify emits the events about a step after its status was written.
func (r *Reconciler) notify(s *promotionState) {
	emit := func(kind, reason, revision, format string, args ...any) {
		metadata := events.Details{events.ReasonKey: reason, eventv1.MetaRevisionKey: revision, eventv1.MetaTokenKey: events.Token(s.now)}
		metadata.Emit(r, s.after, events.New(kind, reason, fmt.Sprintf(format, args...)))
	}
	for _, a := range s.step.Approved {
		emit(events.Normal, v1alpha1.RevisionApprovedReason, a.Revision, msgApproved, a.Revision, a.ApprovedBy, because(a.Message))
	}
	for _, a := range s.step.Voided {
		emit(events.Warning, v1alpha1.ApprovalsVoidedReason, a.Revision, msgVoided, a.Revision, a.ApprovedBy)
	}
	if w := s.step.Waits; w != nil {
		emit(events.Normal, v1alpha1.RevisionWaitsReason, w.Revision, "%s", meta.FindStatusCondition(s.after.Status.Conditions, v1alpha1.ApprovedCondition).Message)
	}
	if done := s.step.Promoted; done != nil {
		by := make([]string, len(done.Approvals))
		for i, a := range done.Approvals {
			by[i] = a.ApprovedBy
		}
		if len(by) > 0 {
			by = []string{msgApprovedBy + strings.Join(by, ", ")}
		}
		if done.RequestedBy != "" {
			by = []string{msgRequestedBy + done.RequestedBy, because(done.Message)}
		}
		if done.Reason == v1alpha1.InitialReconciliationReason {
			r.GateMetrics.CountInitial(s.gates)
		}
		emit(events.Normal, v1alpha1.RevisionPromotedReason, done.Revision, msgPromoted, done.Revision, cmp.Or(done.From, "nothing"), done.Reason, strings.Join(by, ""))
	}
	if refused := s.step.Refused; refused != nil {
		emit(events.Warning, v1alpha1.RollbackRefusedReason, refused.Revision, "%s", promotion.RefusedRollback(refused))
	}
	if before, after := readyFailure(s.before), readyFailure(s.after); after != nil && !reflect.DeepEqual(before, after) {
		emit(events.Warning, after.Reason, "", "%s", after.Message)
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// readyFailure returns the reason and message of the condition Ready if it reports a failure, otherwise nil. Without a pinned revision, the
// failure counts only if the GatedSource is stalled.
func readyFailure(g *v1alpha1.GatedSource) *metav1.Condition {
	ready := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionFalse || g.Status.Pinned == nil && !meta.IsStatusConditionTrue(g.Status.Conditions, fluxmeta.StalledCondition) {
		return nil
	}
	return &metav1.Condition{Reason: ready.Reason, Message: ready.Message}
}
