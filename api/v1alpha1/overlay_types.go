package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxOverlays is the number of entries in status.overlays of a Gate.
const MaxOverlays = 32

// Overlay is the state of some targets of a Gate while a request with targets
// is in force, or while a GateException with spec.targets is valid. If several
// overlays match a target, those of requests win over those of exceptions, and
// then closed wins.
type Overlay struct {
	// exception is the name of the GateException. Missing if the overlay is from a
	// request.
	// +optional
	Exception string `json:"exception,omitempty"`

	// requestedAt is the time of the request in status.requests. Missing if the
	// overlay is from a GateException.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// requestedBy is the requester. Empty if unknown, and if the overlay is from a
	// GateException.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// targets select the targets of the Gate that the overlay applies to, as
	// spec.targets of the GateException or the targets of the request.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Targets []OverlayTarget `json:"targets"`

	// state of these targets until the time in until: closed or opened. Missing
	// if they have the state of the Gate.
	// +optional
	State State `json:"state,omitempty"`

	// since is when the targets got this state from the overlay. Missing without
	// state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// until is when state changes to next. Missing for a close request without an
	// end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// next is the state of these targets from the time in until: closed or opened.
	// Missing if they will have the state of the Gate.
	// +optional
	Next State `json:"next,omitempty"`
}

// OverlayTarget is a TargetReference in a status, where nothing is validated
// again.
type OverlayTarget struct {
	// apiVersion of the targets. Only its group counts.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind of the targets.
	Kind string `json:"kind"`

	// name of the target, or * for all objects of the kind.
	Name string `json:"name"`

	// namespace of the targets. Defaults to the namespace of the Gate.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects the namespaces of the targets by their labels.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// matchLabels are labels that the targets must have, all of them.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions are further conditions on the labels of the targets.
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NewOverlayTargets returns references in the form of a status.
func NewOverlayTargets(refs []TargetReference) []OverlayTarget {
	targets := make([]OverlayTarget, len(refs))
	for i := range refs {
		ref := &refs[i]
		targets[i] = OverlayTarget{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Name: ref.Name, Namespace: ref.Namespace, NamespaceSelector: ref.NamespaceSelector.Kubernetes(),
			MatchLabels: ref.MatchLabels, MatchExpressions: ref.Selector().MatchExpressions,
		}
	}
	return targets
}

// RequestOverlayTargets returns the targets of a request in the form of a
// status.
func RequestOverlayTargets(targets []RequestTarget) []OverlayTarget {
	all := make([]OverlayTarget, len(targets))
	for i, t := range targets {
		all[i] = OverlayTarget{Kind: t.Kind, Name: t.Name, Namespace: t.Namespace}
	}
	return all
}

// Reference returns the target in the form of a spec.
func (in *OverlayTarget) Reference() TargetReference {
	ref := TargetReference{
		APIVersion: in.APIVersion, Kind: in.Kind, Name: in.Name, Namespace: in.Namespace,
		MatchLabels: in.MatchLabels, MatchExpressions: requirements(in.MatchExpressions),
	}
	if s := in.NamespaceSelector; s != nil {
		ref.NamespaceSelector = &LabelSelector{MatchLabels: s.MatchLabels, MatchExpressions: requirements(s.MatchExpressions)}
	}
	return ref
}

func requirements(expressions []metav1.LabelSelectorRequirement) (all []LabelSelectorRequirement) {
	for _, e := range expressions {
		all = append(all, LabelSelectorRequirement(e))
	}
	return all
}
