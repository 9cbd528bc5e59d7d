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

// ReceiverRequester is how the name of the requester begins if a webhook made
// the request. The namespace and name of the GateReceiver follow.
const ReceiverRequester = GateReceiverKind + " "

// RequestState is the state of an accepted request.
// +kubebuilder:validation:Enum=Planned;Waiting;InForce;Ended
type RequestState string

const (
	// RequestPlanned means that the time of the request has not come.
	RequestPlanned RequestState = "Planned"
	// RequestWaiting means that the time of an open request has come, and that it
	// needs more approvals. It does not open the Gate.
	RequestWaiting RequestState = "Waiting"
	// RequestInForce means that the request counts.
	RequestInForce RequestState = "InForce"
	// RequestEnded means that the request is over: its window or spec.window has
	// passed, or a request for the opposite action has ended it.
	RequestEnded RequestState = "Ended"
)

// HandledRequest is what the controller records about the annotation for one
// action. Requests are edge-triggered: each value is handled once. A value
// older than the last one counts as restored by Flux from Git.
type HandledRequest struct {
	// Action requested.
	Action RequestAction `json:"action"`

	// LastHandled is the last value of the annotation that was handled, accepted
	// or refused.
	LastHandled string `json:"lastHandled"`

	// LastRequestedBy is the requester named with that value. A close at the same
	// time by another user is another request.
	// +optional
	LastRequestedBy string `json:"lastRequestedBy,omitempty"`

	// Earlier are the values that were handled before that, latest first. To open,
	// none of them counts again: Flux restores the value in Git.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Earlier []string `json:"earlier,omitempty"`

	// RequestedAt is the time in the last accepted value whose time has come.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// Window is the duration in that value, missing if it has none.
	// +optional
	Window *Duration `json:"window,omitempty"`

	// Unlimited is true if that value is a close request without end.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// RequestedBy is the requester of that, empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}

// AcceptedRequest is a request that counts. It outlives its annotation, which
// Flux removes from a Gate that is in Git.
type AcceptedRequest struct {
	// Action requested.
	Action RequestAction `json:"action"`

	// RequestedAt is when the request takes effect: after the last approval, if
	// it has waited for that.
	RequestedAt metav1.MicroTime `json:"requestedAt"`

	// Window of the request, if it has one of its own. An open request ends when
	// this window or spec.window is over, whichever is first. A close request ends
	// when this window is over, or without one when spec.window is. With neither,
	// a request lasts until an opposite request ends it.
	// +optional
	Window *Duration `json:"window,omitempty"`

	// Unlimited is true for a close request that lasts until an open request ends
	// it: spec.window does not limit it.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// AcceptedAt is when the controller saw the request. Requests count in this
	// order.
	AcceptedAt metav1.MicroTime `json:"acceptedAt"`

	// State is Planned until the time of the request has come, Waiting while an
	// open request needs more approvals, InForce while the request counts, and
	// Ended after that. At most 8 users can have a waiting request, one each. A
	// waiting request is dropped when a user closes the Gate, and when its window,
	// spec.window or 7 days have passed.
	State RequestState `json:"state"`

	// Approvals of an open request by users other than its requester.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Approvals []RequestApproval `json:"approvals,omitempty"`

	// Stamped is true if the API server has recorded the requester. Only then can
	// others approve the request.
	// +optional
	Stamped bool `json:"stamped,omitempty"`

	// Emergency is true if the request needs no approvals because it is an
	// emergency.
	// +optional
	Emergency bool `json:"emergency,omitempty"`

	// Until is when the request ends because its window or spec.window does. A
	// longer spec.window never moves it. Missing for an open request without an
	// end, and for a close request until it is over.
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`

	// EndedAt is when a request for the opposite action took the place of this
	// one. Missing if none has.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`

	// RequestedBy is the requester, empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// Message given with the request.
	// +optional
	Message string `json:"message,omitempty"`

	// Source of the request: annotation, or webhook if a GateReceiver made it.
	// A webhook does not end a close request of a user.
	Source string `json:"source"`
}

// RequestApproval is one person's approval of an open request.
type RequestApproval struct {
	// ApprovedBy is the user who approved, as the API server stamped it. Cut to
	// 339 bytes.
	ApprovedBy string `json:"approvedBy"`

	// RecordedAt is when the controller saw the approval.
	RecordedAt metav1.MicroTime `json:"recordedAt"`
}
