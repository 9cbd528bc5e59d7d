package explain

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// GateState is the state of a Gate with respect to an object.
type GateState string

// The states of a Gate.
const (
	Opened GateState = "opened"
	Closed GateState = "closed"
	// Unknown means that the controller has not decided, or that the user is not permitted to read the Gate.
	Unknown GateState = "unknown"
	// Missing means that the object refers to a Gate that does not exist.
	Missing GateState = "missing"
	// Denied means that the object refers to a Gate that it is not allowed to refer to.
	Denied GateState = "denied"
)

// Gate is a Gate that concerns an object.
type Gate struct {
	// Gate is the name, as namespace/name.
	Gate  string    `json:"gate"`
	State GateState `json:"state"`
	// Mode is Audit if the Gate holds nothing, otherwise empty. WouldHold is true if the Gate would hold the object without mode Audit.
	Mode      v1alpha1.Mode `json:"mode,omitempty"`
	WouldHold bool          `json:"wouldHold,omitempty"`
	// Suspended is true if the Gate has spec.suspend.
	Suspended bool `json:"suspended,omitempty"`
	// Rules are the references by which the Gate governs the object: entries of spec.targets, or the annotation of the object. They are
	// empty if the Gate is only named in the annotations of the object.
	Rules []string `json:"rules"`
	// Hidden is true if the user is not permitted to read the Gate.
	Hidden bool `json:"hidden,omitempty"`
	// Holds is true if the Gate holds the object.
	Holds bool `json:"holds"`
	// Reason and Message are the reason and message of the condition Opened. Period and Exception name the period or exception that decided,
	// as in status.lastTransition.
	Reason    string `json:"reason,omitempty"`
	Period    string `json:"period,omitempty"`
	Exception string `json:"exception,omitempty"`
	Message   string `json:"message,omitempty"`
	// Since is the time when the Gate changed to its state, and Until is the time when the state ends. Each is missing if unknown.
	Since *metav1.Time `json:"since,omitempty"`
	Until *metav1.Time `json:"until,omitempty"`
	// RequestedBy and RequestMessage are the requester and the reason of the request that caused the state.
	RequestedBy    string `json:"requestedBy,omitempty"`
	RequestMessage string `json:"requestMessage,omitempty"`
}

// gate returns a Gate with respect to an object.
func (k Cluster) gate(g verdict.Gate, t *target.Object, holds bool) Gate {
	is := Gate{Gate: g.Name, State: Unknown, Holds: holds, Rules: k.rules(g.Name, g.Object, &t.Unstructured)}
	switch g.Effect {
	case verdict.Missing:
		is.State = Missing
	case verdict.Denied:
		is.State = Denied
	case verdict.OtherShard:
		is.Hidden = true
	default:
	}
	if g.Object == nil {
		return is
	}
	status := &g.Object.Status
	is.Suspended = g.Object.Spec.Suspend
	if g.Audits {
		is.Mode = v1alpha1.ModeAudit
	}
	opened := meta.FindStatusCondition(status.Conditions, v1alpha1.OpenedCondition)
	if opened == nil {
		return is
	}
	is.State, is.Reason, is.Message = Closed, opened.Reason, opened.Message
	if opened.Status == metav1.ConditionTrue && g.Effect != verdict.Closed {
		is.State = Opened
	}
	if last := status.LastTransition; last != nil {
		is.Period, is.Exception, is.Since = last.Period, last.Exception, last.At.DeepCopy()
	}
	if next := status.NextTransition; next != nil {
		is.Until = next.At.DeepCopy()
	}
	if by := ledger.DecidedBy(g.Object, k.Now); by != nil {
		is.RequestedBy, is.RequestMessage = by.By, by.Reason
	}
	return is
}

// rules returns the references by which a Gate governs an object, such as spec.targets[2]: Kustomization *. The Gate is nil if it is
// unknown.
func (k Cluster) rules(name string, g *v1alpha1.Gate, obj *unstructured.Unstructured) []string {
	rules := []string{}
	if g != nil {
		scope := verdict.Scope{Labels: k.Labels, Own: k.Own}
		for i := range g.Spec.Targets {
			ref := &g.Spec.Targets[i]
			if scope.Names(ref, g.Namespace, obj) {
				rules = append(rules, fmt.Sprintf("spec.targets[%d]: %s", i, gate.TextOf(ref)))
			}
		}
	}
	if slices.Contains(verdict.NamedBy(obj), name) {
		rules = append(rules, "annotation "+v1alpha1.GatesAnnotation)
	}
	return rules
}
