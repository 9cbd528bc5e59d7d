package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RequestAction is what a request asks for.
// +kubebuilder:validation:Enum=open;close
type RequestAction string

const (
	// RequestOpen asks to open.
	RequestOpen RequestAction = "open"
	// RequestClose asks to close.
	RequestClose RequestAction = "close"
)

// SourceAnnotation is the source of a request made by annotating the Gate.
const SourceAnnotation = "annotation"

// LastRequest is the request accepted last.
type LastRequest struct {
	// Action that was requested.
	Action RequestAction `json:"action"`

	// RequestedAt is the time from which on the request is in force.
	RequestedAt metav1.Time `json:"requestedAt"`

	// By is who made the request: the user whom the API server stamped into the
	// annotation if config/policies is installed, else who the caller claims to be.
	// Cut to 339 bytes.
	// +optional
	By string `json:"by,omitempty"`

	// Reason given with the request, in one line. Cut to 512 bytes.
	// +optional
	Reason string `json:"reason,omitempty"`

	// Source of the request, such as annotation.
	Source string `json:"source"`
}

// RequestMemory is what the controller remembers of the requests for one
// action. Requests are edge-triggered: they outlive their annotation, which
// Flux removes from a Gate that is in Git.
type RequestMemory struct {
	// Action requested.
	Action RequestAction `json:"action"`

	// LastHandled is the value of the annotation that was handled last, accepted
	// or refused.
	LastHandled string `json:"lastHandled"`

	// RequestedAt is the time of the last request whose time had come.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// By is who made that request.
	// +optional
	By string `json:"by,omitempty"`

	// Reason given with that request.
	// +optional
	Reason string `json:"reason,omitempty"`

	// PlannedAt is the time of a request that is still to come.
	// +optional
	PlannedAt *metav1.MicroTime `json:"plannedAt,omitempty"`

	// PlannedBy is who made the request that is still to come.
	// +optional
	PlannedBy string `json:"plannedBy,omitempty"`

	// PlannedReason is the reason given with the request that is still to come.
	// +optional
	PlannedReason string `json:"plannedReason,omitempty"`
}
