package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxOverlays is the number of entries in status.overlays of a Gate.
const MaxOverlays = 32

// Overlay is the state of some targets of a Gate while a GateException with
// spec.targets is valid. If several overlays match a target, closed wins.
type Overlay struct {
	// Exception is the name of the GateException.
	Exception string `json:"exception"`

	// Targets select the targets of the Gate that the overlay applies to, as
	// spec.targets of the GateException.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	Targets []TargetReference `json:"targets"`

	// State of these targets until the time in until: closed or opened. Missing
	// if they have the state of the Gate.
	// +optional
	State State `json:"state,omitempty"`

	// Since is when the targets got this state from the overlay. Missing without
	// state.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`

	// Until is when state changes to next.
	Until metav1.Time `json:"until"`

	// Next is the state of these targets from the time in until: closed or opened.
	// Missing if they will have the state of the Gate.
	// +optional
	Next State `json:"next,omitempty"`
}
