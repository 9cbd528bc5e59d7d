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

const (
	// SourceAnnotation is the source of a request made by annotating the Gate.
	SourceAnnotation = "annotation"
	// SourceWebhook is the source of a request that a GateReceiver made.
	SourceWebhook = "webhook"
)

// ReceiverRequester is what the name of who made a request begins with if a webhook
// did. The namespace and name of the GateReceiver follow.
const ReceiverRequester = GateReceiverKind + " "

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

	// Window of the request, if it has one of its own.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// Source of the request: annotation, or webhook if a GateReceiver made it.
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

	// Window of that request, if it has one of its own.
	// +optional
	Window *metav1.Duration `json:"window,omitempty"`

	// By is who made that request.
	// +optional
	By string `json:"by,omitempty"`

	// Reason given with that request.
	// +optional
	Reason string `json:"reason,omitempty"`

	// PlannedAt is the time of a request that is still to come.
	// +optional
	PlannedAt *metav1.MicroTime `json:"plannedAt,omitempty"`

	// PlannedWindow is the window of the request that is still to come, if it has one of
	// its own.
	// +optional
	PlannedWindow *metav1.Duration `json:"plannedWindow,omitempty"`

	// PlannedBy is who made the request that is still to come.
	// +optional
	PlannedBy string `json:"plannedBy,omitempty"`

	// PlannedReason is the reason given with the request that is still to come.
	// +optional
	PlannedReason string `json:"plannedReason,omitempty"`
}
