package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxOverlays is the maximum number of entries in status.overlays of a Gate.
const MaxOverlays = 32

// Overlay is the state of some targets of a Gate while a request with targets
// is in force, or while a GateException with spec.targets is valid. If
// several overlays match a target, the overlays of requests take precedence
// over the overlays of exceptions, and then closed takes precedence.
type Overlay struct {
	// exception is the name of the GateException. Missing if the overlay is from a
	// request.
	// +optional
	Exception string `json:"exception,omitempty"`

	// requestedAt is the time of the request in status.requests. Missing if the
	// overlay is from a GateException.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// requestedBy is the requester. Empty if it is unknown, or if the overlay is
	// from a GateException.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// targets select the targets of the Gate that the overlay applies to, as
	// spec.targets of the GateException or the targets of the request.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Targets []OverlayTarget `json:"targets"`

	// state is the state of these targets until the time in until: closed or
	// opened. Missing if they have the state of the Gate.
	// +optional
	State State `json:"state,omitempty"`

	// since is the time when the targets got this state from the overlay. Missing
	// without state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// until is the time when state changes to next. Missing for a close request
	// without an end.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// next is the state of these targets from the time in until: closed or opened.
	// Missing if they will have the state of the Gate.
	// +optional
	Next State `json:"next,omitempty"`
}

// OverlayTarget is a TargetReference in a status. It is not validated again.
type OverlayTarget struct {
	// apiVersion is the API version of the targets. Only its group is used.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the targets.
	Kind string `json:"kind"`

	// name is the name of the target, or * for all objects of the kind.
	Name string `json:"name"`

	// namespace is the namespace of the targets. Defaults to the namespace of the
	// Gate.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// namespaceSelector selects the namespaces of the targets by label.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// matchLabels are labels that the targets must have.
	// +optional
	MatchLabels map[string]string `json:"matchLabels,omitempty"`

	// matchExpressions are label selector requirements that the targets must meet
	// in addition to matchLabels.
	// +listType=atomic
	// +optional
	MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// NewOverlayTargets converts references to OverlayTargets.
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

// RequestOverlayTargets converts the targets of a request to OverlayTargets.
func RequestOverlayTargets(targets []RequestTarget) []OverlayTarget {
	all := make([]OverlayTarget, len(targets))
	for i, t := range targets {
		all[i] = OverlayTarget{Kind: t.Kind, Name: t.Name, Namespace: t.Namespace}
	}
	return all
}

// Reference converts the target to a TargetReference.
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
