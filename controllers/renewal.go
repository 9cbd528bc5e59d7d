package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// ourConditions are the types of those that we set on a Certificate.
var ourConditions = []string{
	v1alpha1.ApprovedCondition, v1alpha1.RenewalDeferredCondition, v1alpha1.RenewalDisabledCondition,
	v1alpha1.RenewalWindowBypassedCondition, v1alpha1.RenewalConfigInvalidCondition, v1alpha1.ActivatedCondition,
}

// certify sets the conditions of a Certificate, by server-side apply: what is not
// among them any more goes.
func (r *GateReconciler) certify(ctx context.Context, obj *target.Object, step target.Step, plan planned, approved *metav1.Condition) (*target.Object, error) {
	if step.Outcome == target.Untouched || step.Outcome == target.OutcomeExempt && plan.Exempt == target.NotReady {
		return obj, nil
	}
	before, after := map[string]metav1.Condition{}, map[string]metav1.Condition{}
	for _, condition := range obj.GetConditions() {
		if slices.Contains(ourConditions, condition.Type) {
			before[condition.Type] = condition
		}
	}
	list := renewalConditions(obj, step, plan)
	if activated := conditions.Get(obj, v1alpha1.ActivatedCondition); activated != nil {
		list = append(list, *activated) // see activate
	}
	if approved != nil {
		list = append(list, *approved)
	}
	changed := len(list) != len(before)
	for _, condition := range list {
		was, ok := before[condition.Type]
		same := ok && was.Status == condition.Status && was.Reason == condition.Reason && was.Message == condition.Message
		condition.LastTransitionTime = was.LastTransitionTime
		if !ok || was.Status != condition.Status {
			condition.LastTransitionTime = metav1.NewTime(plan.now)
		}
		after[condition.Type] = condition
		changed = changed || !same
	}
	if !changed {
		return obj, nil
	}
	latest, err := r.applyConditions(ctx, obj, after)
	if err == nil {
		r.certified(latest, before, after)
	}
	return latest, client.IgnoreNotFound(err)
}

func (r *GateReconciler) applyConditions(ctx context.Context, obj *target.Object, list map[string]metav1.Condition) (*target.Object, error) {
	config := configOf(obj)
	config.SetConditions(slices.SortedFunc(maps.Values(list), func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) }))
	err := r.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
	if err != nil {
		return obj, err
	}
	target.Trim(&config.Unstructured, us)
	return config, nil
}

// certified counts and tells what is new in the conditions of a Certificate.
func (r *GateReconciler) certified(obj *target.Object, before, after map[string]metav1.Condition) {
	for _, name := range ourConditions {
		now := after[name]
		if now.Status != metav1.ConditionTrue || before[name].Status == metav1.ConditionTrue {
			continue
		}
		switch name {
		case v1alpha1.RenewalDeferredCondition:
			r.GateMetrics.deferred.WithLabelValues("outside_window").Inc()
		case v1alpha1.RenewalDisabledCondition:
			r.GateMetrics.deferred.WithLabelValues("disabled").Inc()
			r.Eventf(obj, eventWarning, name, "%s", now.Message)
		case v1alpha1.RenewalWindowBypassedCondition:
			r.GateMetrics.bypassed.WithLabelValues("expiry_imminent").Inc()
			r.Eventf(obj, eventWarning, name, "%s", now.Message)
		case v1alpha1.RenewalConfigInvalidCondition:
			r.Eventf(obj, eventWarning, name, "%s", now.Message)
		}
	}
}

// renewalConditions returns the conditions of a Certificate on its renewal after a
// step, in the names of the Gates that hold it then.
func renewalConditions(obj *target.Object, step target.Step, plan planned) []metav1.Condition {
	var list []metav1.Condition
	add := func(name string, status metav1.ConditionStatus, reason, message string) {
		list = append(list, metav1.Condition{Type: name, Status: status, Reason: reason, Message: message})
	}
	notAfter, _, _ := unstructured.NestedString(obj.Object, "status", "notAfter")
	byHand := fmt.Sprintf("To renew by hand: cmctl renew -n %s %s", obj.GetNamespace(), obj.GetName())
	switch {
	case len(step.HeldBy) == 0 || step.Outcome == target.OutcomeForeign || step.Outcome == target.OutcomeResumed:
		return nil
	case plan.Bypassed:
		add(v1alpha1.RenewalWindowBypassedCondition, metav1.ConditionTrue, v1alpha1.ExpiryImminentReason, fmt.Sprintf(
			"Certificate expires at %s, it is renewed although %s. %s", notAfter, closedGates(step.HeldBy), byHand))
	case plan.Exempt == target.Needless:
		add(v1alpha1.RenewalDeferredCondition, metav1.ConditionFalse, v1alpha1.RenewalWithinMarginReason,
			"The renewal is due only when the safety margin has begun, so that no gate holds it.")
	case plan.Exempt == target.Unsupported:
		add(v1alpha1.RenewalConfigInvalidCondition, metav1.ConditionTrue, v1alpha1.UnsupportedVersionReason, unsupported)
	case step.Hold && plan.terms.Strict && !openingInSight(plan.gates):
		add(v1alpha1.RenewalDisabledCondition, metav1.ConditionTrue, v1alpha1.UserConfiguredReason, fmt.Sprintf(
			"Automatic renewal is disabled, %s and no opening is in sight. Certificate expires at %s. %s", closedGates(step.HeldBy), notAfter, byHand))
	case step.Hold:
		add(v1alpha1.RenewalDeferredCondition, metav1.ConditionTrue, v1alpha1.OutsideAllowedWindowReason,
			deferred(step.HeldBy, plan.gates, plan.Recheck, notAfter)+" "+byHand)
	}
	if plan.Ignored && step.Hold {
		add(v1alpha1.RenewalConfigInvalidCondition, metav1.ConditionTrue, v1alpha1.WindowIgnoredReason, ignored)
		return list
	}
	if _, before := plan.Lever["renewBefore"]; before && step.Hold && plan.terms.Strict {
		add(v1alpha1.RenewalConfigInvalidCondition, metav1.ConditionTrue, v1alpha1.UnsupportedVersionReason, notStrict)
		return list
	}
	for _, gate := range plan.gates {
		if opened := conditions.Get(gate, v1alpha1.OpenedCondition); opened != nil && opened.Reason == v1alpha1.InvalidSpecReason {
			add(v1alpha1.RenewalConfigInvalidCondition, metav1.ConditionTrue, v1alpha1.InvalidSpecReason, fmt.Sprintf(
				"The spec of gate '%s' is invalid, the renewal stays as it is: %s", client.ObjectKeyFromObject(gate), opened.Message))
			break
		}
	}
	return list
}

const unsupported = "The renewal is not held: this release of cert-manager needs spec.renewBefore for that, which somebody else has set, " +
	"or spec.renewBeforePercentage. Remove it, or install cert-manager v1.21.1 or later."

const ignored = "cert-manager did not plan the renewal for the deadline that was set. It is disabled instead, " +
	"the gating-controller itself lets the certificate go at the deadline."

const notStrict = "A gate is strict, but this release of cert-manager cannot disable the renewal, it is only as late as possible. " +
	"Install cert-manager v1.21.1 or later."

func closedGates(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf("gate '%s' is closed", names[0])
	}
	return fmt.Sprintf("gates '%s' are closed", strings.Join(names, "', '"))
}

// deferred says until when the renewal is deferred.
func deferred(names []string, gates []*v1alpha1.Gate, deadline time.Time, notAfter string) string {
	said := closedGates(names)
	said = strings.ToUpper(said[:1]) + said[1:] + "."
	for _, gate := range gates {
		if at, zone, ok := opening(gate); ok {
			said += fmt.Sprintf(" Next allowed renewal window starts at %s (%s)", at.Format(time.RFC3339), zone)
			if len(names) > 1 {
				said += fmt.Sprintf(", when gate '%s' opens", client.ObjectKeyFromObject(gate))
			}
			said += "."
		}
	}
	if deadline.IsZero() {
		return said + fmt.Sprintf(" Certificate expires at %s.", notAfter)
	}
	return said + fmt.Sprintf(" It is renewed at %s at the latest.", deadline.UTC().Format(time.RFC3339))
}

func openingInSight(gates []*v1alpha1.Gate) bool {
	return slices.ContainsFunc(gates, func(gate *v1alpha1.Gate) bool {
		_, _, ok := opening(gate)
		return ok
	})
}

// opening returns when a closed Gate opens next, in the zone of the period that
// opens it.
func opening(gate *v1alpha1.Gate) (at time.Time, zone string, ok bool) {
	next := gate.Status.NextTransition
	if next == nil || next.State != v1alpha1.StateOpened || gate.Spec.Suspend {
		return time.Time{}, "", false
	}
	zone = string(gate.Spec.TimeZone)
	for _, window := range gate.Spec.Windows {
		if window.Name == next.By && window.TimeZone != "" {
			zone = string(window.TimeZone)
		}
	}
	location, err := tz.Load(zone)
	if err != nil {
		return next.At.UTC(), "UTC", true
	}
	return next.At.In(location), zone, true
}
