// Package describe describes the status of a Gate in words. It is pure.
package describe

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/preview"
)

// LackingApproval returns the open requests of a Gate, waiting or planned, that lack approvals.
func LackingApproval(g *v1alpha1.Gate, now time.Time) []v1alpha1.AcceptedRequest {
	_, planned := ledger.RequestsAt(g, now)
	return slices.DeleteFunc(planned, func(r v1alpha1.AcceptedRequest) bool { return ledger.Lacks(g, &r) == 0 })
}

// ToApprove describes how many open requests of a Gate wait for approval, empty if there are none.
func ToApprove(g *v1alpha1.Gate, now time.Time) string {
	all := slices.DeleteFunc(LackingApproval(g, now), func(r v1alpha1.AcceptedRequest) bool { return r.State != v1alpha1.RequestWaiting })
	if len(all) == 0 {
		return ""
	}
	return format.Count(len(all), "request") + " to approve"
}

// Condition returns the condition of a type. It is empty if there is no such condition.
func Condition(conditions []metav1.Condition, of string) metav1.Condition {
	if c := meta.FindStatusCondition(conditions, of); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// IsSettled returns whether all targets of a Gate have reached the desired state.
func IsSettled(g *v1alpha1.Gate) bool {
	busy := meta.IsStatusConditionTrue(g.Status.Conditions, fluxmeta.ReconcilingCondition)
	paced := g.Status.Release != nil && g.Status.Release.NextAt != nil || gate.ReleasesInWaves(g)
	return g.Status.Targets != nil && g.Status.Targets.Pending == 0 && g.Generation == g.Status.ObservedGeneration && !busy && !paced
}

// UnknownState is the state of a Gate that the controller has not evaluated.
const UnknownState = "unknown"

// State returns the state of a Gate from its status.
func State(g *v1alpha1.Gate) string {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	switch {
	case opened == nil:
		return UnknownState
	case opened.Status == metav1.ConditionTrue:
		return string(v1alpha1.StateOpened)
	}
	return string(v1alpha1.StateClosed)
}

// Overlaid describes how many targets have another state than their Gate, to be appended to the state, such as " (2 of 40 open)". It is
// empty if there are none.
func Overlaid(g *v1alpha1.Gate) string {
	if text := gate.Overlaid(g); text != "" {
		return " (" + text + ")"
	}
	return ""
}

// Reason returns the reason for the state of a Gate in two or three words.
func Reason(g *v1alpha1.Gate) string {
	opened := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.OpenedCondition)
	if opened == nil {
		return "not decided yet"
	}
	by := ""
	if last := g.Status.LastTransition; last != nil {
		by = last.DecidedBy()
	}
	text := Words(opened.Reason, by)
	if g.Audits() {
		text += ", audit"
	}
	if g.Spec.Suspend {
		text += ", suspended"
	}
	return text
}

// Words describes a reason of the condition Opened. by is the period or exception that decides, empty if there is none.
func Words(reason, by string) string { return preview.ShortReason(reason, by) }

// IsInWaves returns whether a Gate is releasing a wave.
func IsInWaves(g *v1alpha1.Gate) bool {
	return gate.ReleasesInWaves(g) && g.Status.Release != nil && g.Status.Release.Waves != nil && g.Status.Release.Waves.Current != ""
}
