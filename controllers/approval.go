package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// approve sets the conditions of a target that tell what becomes of it and returns
// what it is then. Flux's conditions are an atomic list for server-side apply, so
// that this is a patch on a version.
func (r *GateReconciler) approve(ctx context.Context, s settled) (*target.Object, error) {
	obj, step, want, plan := s.obj, s.step, s.want, s.plan
	condition := approval(step, want.Want, plan.Exempt)
	was := conditions.Get(obj, v1alpha1.ApprovedCondition)
	switch {
	case was != nil && was.Reason == v1alpha1.ResumedReason && step.Outcome == target.OutcomeExempt:
		condition = was // still resumed once it is not exempt any more
	case plan.Exempt == target.Activates:
		condition = nil // the condition Activated tells
	case condition == nil, was == nil && condition.Status == metav1.ConditionTrue && len(step.HeldBy) == 0:
		condition = was
	case step.Hold && refusedFor(was, step.HeldBy, want.Gate):
		condition = was // it says more than that this Gate is closed
	case was != nil && was.Status == condition.Status && (step.Outcome == target.Untouched || was.Reason == condition.Reason && was.Message == condition.Message):
		condition = was
	}
	if isCertificate(obj) {
		return r.certify(ctx, obj, step, plan, condition)
	}
	if condition == was {
		return obj, nil
	}
	approved := &target.Object{Unstructured: *obj.DeepCopy()}
	conditions.Set(approved, condition)
	return approved, client.IgnoreNotFound(r.patchConditions(ctx, approved))
}

// patchConditions writes the conditions of a target on the version that was read.
func (r *GateReconciler) patchConditions(ctx context.Context, obj *target.Object) error {
	list, _, err := unstructured.NestedFieldNoCopy(obj.Object, "status", "conditions")
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": obj.GetResourceVersion()},
		"status":   map[string]any{"conditions": list},
	})
	if err != nil {
		return err
	}
	latest := metadataOf(obj)
	err = r.Status().Patch(ctx, latest, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(v1alpha1.FieldManager))
	if err == nil {
		obj.SetResourceVersion(latest.ResourceVersion)
	}
	return err
}

// approval returns the condition that a target has after a step, nil if it is
// to stay as it is.
func approval(step target.Step, want target.Want, exempt target.Exemption) *metav1.Condition {
	condition := &metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.GateOpenedReason}
	switch {
	case step.Hold:
		condition.Status, condition.Reason = metav1.ConditionFalse, v1alpha1.GateClosedReason
		condition.Message = waiting(step.HeldBy)
		if want.Refusal != "" {
			condition.Reason, condition.Message = want.Refusal, refusal(want.Refusal, want.Gate)
		}
	case step.Outcome == target.OutcomeExempt && exemptions[exempt] == "":
		return nil
	case len(step.HeldBy) > 0 && exemptions[exempt] != "":
		condition.Reason = exemptions[exempt]
		condition.Message = fmt.Sprintf("Not held although %s.", closedGates(step.HeldBy))
	case step.Outcome == target.OutcomeResumed:
		condition.Reason = v1alpha1.ResumedReason
		condition.Message = fmt.Sprintf("Resumed by hand, held by '%s' before.", strings.Join(step.HeldBy, "', '"))
	case step.Outcome == target.OutcomeForeign && step.Write:
		condition.Reason = v1alpha1.ResumedReason
		condition.Message = fmt.Sprintf("Resumed and suspended by hand, held by '%s' before.", want.Gate)
	case step.Outcome == target.OutcomeForeign:
		return nil
	default:
		condition.Message = released(want)
	}
	return condition
}

// exemptions are the reasons of Approved=True for an object that is not held
// although a Gate is closed.
var exemptions = map[target.Exemption]string{
	target.Imminent:    v1alpha1.ExpiryImminentReason,
	target.Needless:    v1alpha1.RenewalWithinMarginReason,
	target.Unsupported: v1alpha1.UnsupportedVersionReason,
}

// exempted returns whether an object was exempt from a hold so far.
func exempted(obj *target.Object) bool {
	was := conditions.Get(obj, v1alpha1.ApprovedCondition)
	return was != nil && was.Status == metav1.ConditionTrue && slices.Contains(slices.Collect(maps.Values(exemptions)), was.Reason)
}

// waiting is the wording of the Flux RFC on gating.
func waiting(gates []string) string {
	switch len(gates) {
	case 0: // there is no room for a name
		return "Reconciliation is waiting approval, a gate is closed."
	case 1:
		return fmt.Sprintf("Reconciliation is waiting approval, gate '%s' is closed.", gates[0])
	}
	return fmt.Sprintf("Reconciliation is waiting approval, gates '%s' are closed.", strings.Join(gates, "', '"))
}

// refusal says why a target is held although nobody closed the Gate that it
// names.
func refusal(reason, gate string) string {
	switch {
	case reason == v1alpha1.AccessDeniedReason:
		return fmt.Sprintf("Reconciliation is waiting approval, gate '%s' is in another namespace, "+
			"which the controller must watch, with --allow-cross-namespace-refs.", gate)
	case strings.HasSuffix(gate, "/"+target.NoGate):
		return fmt.Sprintf("Reconciliation is waiting approval, annotation %s must be a list of at most %d gates, each as name or namespace/name.",
			v1alpha1.GatesAnnotation, target.MaxNamedGates)
	}
	return fmt.Sprintf("Reconciliation is waiting approval, gate '%s' does not exist.", gate)
}

// refusedFor returns whether a condition tells of a refusal that is about
// another of the Gates which hold the target.
func refusedFor(condition *metav1.Condition, holders []string, gate string) bool {
	return condition != nil && slices.ContainsFunc(holders, func(other string) bool {
		return other != gate && condition.Message == refusal(condition.Reason, other)
	})
}

func released(want target.Want) string {
	if want.Gate == "" {
		return "Released, no gate that governs it is closed."
	}
	return fmt.Sprintf("Released by gate '%s'.", want.Gate)
}
