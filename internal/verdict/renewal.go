package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/tz"
)

const (
	unsupported = msgRenewBefore +
		msgRenewBeforeRemedy

	windowIgnored = msgWindowIgnored +
		msgWindowIgnoredRemedy

	notStrict = msgNoDisable +
		msgNoDisableRemedy
)

// Renewal returns the renewal conditions of a Certificate after its step.
func (r Ruling) Renewal() []metav1.Condition {
	var list []metav1.Condition
	add := func(name string, status metav1.ConditionStatus, reason, message string) {
		list = append(list, metav1.Condition{Type: name, Status: status, Reason: reason, Message: message})
	}
	names := r.Step.Names
	notAfter, _, _ := unstructured.NestedString(r.Object.Object, "status", "notAfter")
	renewManually := fmt.Sprintf(msgRenewManually, r.Object.GetNamespace(), r.Object.GetName())
	switch {
	case len(names) == 0 || r.Step.Outcome == SuspendedByOthers || r.Step.Outcome == Resumed:
		return nil
	case r.Plan.Bypassed:
		add(v1alpha1.RenewalWindowBypassedCondition, metav1.ConditionTrue, v1alpha1.ExpiryImminentReason, fmt.Sprintf(
			msgRenewedAnyway, notAfter, are(names), renewManually))
	case r.Plan.Exempt == target.Needless:
		add(v1alpha1.RenewalDeferredCondition, metav1.ConditionFalse, v1alpha1.RenewalWithinMarginReason,
			msgRenewalNeedless)
	case r.Plan.Exempt == target.Unsupported:
		add(v1alpha1.RenewalConfigInvalidCondition, metav1.ConditionTrue, v1alpha1.UnsupportedVersionReason, unsupported)
	case r.Step.Hold && r.Terms.Strict && !slices.ContainsFunc(r.Verdict.Holders, Gate.opensSoon):
		add(v1alpha1.RenewalDisabledCondition, metav1.ConditionTrue, v1alpha1.UserConfiguredReason, fmt.Sprintf(
			msgRenewalDisabled, are(names), notAfter, renewManually))
	case r.Step.Hold:
		add(v1alpha1.RenewalDeferredCondition, metav1.ConditionTrue, v1alpha1.OutsideAllowedWindowReason, r.deferred(notAfter)+" "+renewManually)
	}
	if reason, message := r.misconfigured(); reason != "" {
		add(v1alpha1.RenewalConfigInvalidCondition, metav1.ConditionTrue, reason, message)
	}
	return list
}

// misconfigured returns the reason and the message if the renewal cannot be held as the Gates specify, empty if it can.
func (r Ruling) misconfigured() (reason, message string) {
	_, before := r.Plan.Lever["renewBefore"]
	switch {
	case r.Step.Hold && r.Plan.Ignored:
		return v1alpha1.WindowIgnoredReason, windowIgnored
	case r.Step.Hold && r.Terms.Strict && before:
		return v1alpha1.UnsupportedVersionReason, notStrict
	}
	for _, g := range r.Verdict.Holders {
		if g.Object == nil {
			continue
		}
		if opened := meta.FindStatusCondition(g.Object.Status.Conditions, v1alpha1.OpenedCondition); opened != nil && opened.Reason == v1alpha1.InvalidSpecReason {
			return v1alpha1.InvalidSpecReason, fmt.Sprintf(msgRenewalInvalidSpec, g.Name, opened.Message)
		}
	}
	return "", ""
}

// deferred returns a message about the reason why the renewal is deferred, and about the end of the deferral.
func (r Ruling) deferred(notAfter string) string {
	said := are(r.Step.Names)
	said = strings.ToUpper(said[:1]) + said[1:] + " closed."
	for _, g := range r.Verdict.Holders {
		if at, zone, ok := g.Opening(); ok {
			said += fmt.Sprintf(msgNextWindow, at.Format(time.RFC3339), zone)
			if len(r.Step.Names) > 1 {
				said += fmt.Sprintf(msgNextWindowGate, g.Name)
			}
			said += "."
		}
	}
	if r.Plan.Recheck.IsZero() {
		return said + fmt.Sprintf(msgExpires, notAfter)
	}
	return said + fmt.Sprintf(msgRenewedLatest, r.Plan.Recheck.UTC().Format(time.RFC3339))
}

func (g Gate) opensSoon() bool {
	_, _, ok := g.Opening()
	return ok
}

// Opening returns when a closed Gate opens next, and the zone of the open period. The time is in that zone. ok is false if no opening is
// scheduled.
func (g Gate) Opening() (at time.Time, zone string, ok bool) {
	if g.Object == nil || g.Object.Spec.Suspend {
		return time.Time{}, "", false
	}
	next := g.Object.Status.NextTransition
	if next == nil || next.State != v1alpha1.StateOpened {
		return time.Time{}, "", false
	}
	zone = string(g.Object.Spec.TimeZone)
	for _, window := range g.Object.Spec.OpenPeriods {
		if window.Name == next.Period && window.TimeZone != "" {
			zone = string(window.TimeZone)
		}
	}
	location, err := tz.Load(zone)
	if err != nil {
		return next.At.UTC(), "UTC", true
	}
	return next.At.In(location), zone, true
}
