package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RequestAction is the action of a request.
// +kubebuilder:validation:Enum=open;close
type RequestAction string

const (
	// RequestOpen requests that the Gate open.
	RequestOpen RequestAction = "open"
	// RequestClose requests that the Gate close.
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
	// Action of the annotation: open or close.
	Action RequestAction `json:"action"`

	// LastHandled is the last value of the annotation that the controller handled,
	// whether it accepted or refused the request.
	LastHandled string `json:"lastHandled"`

	// LastRequestedBy is the requester of that value. A close request with the
	// same value by another user is another request.
	// +optional
	LastRequestedBy string `json:"lastRequestedBy,omitempty"`

	// Earlier lists the values that were handled before lastHandled, latest first,
	// at most 8. An open request with one of them is ignored, because Flux can
	// restore an old value from Git.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Earlier []string `json:"earlier,omitempty"`

	// RequestedAt is the time in the last accepted value whose time has come.
	// Missing if there is none.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// Window is the duration in that value. Missing if the value has none.
	// +optional
	Window *Duration `json:"window,omitempty"`

	// Unlimited is true if that value requests a close without an end.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// RequestedBy is the requester of that value. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}

// AcceptedRequest is a request that counts. It outlives its annotation, which
// Flux removes from a Gate that is in Git.
type AcceptedRequest struct {
	// Action that is requested: open or close.
	Action RequestAction `json:"action"`

	// RequestedAt is when the request takes effect. If the request waited for
	// approval, this is when it got the last one.
	RequestedAt metav1.MicroTime `json:"requestedAt"`

	// Window is the duration of the request. An open request ends after this time
	// or after spec.window, whichever comes first. A close request ends after this
	// time, or after spec.window if it has none. Without both, a request lasts
	// until an opposite request ends it.
	// +optional
	Window *Duration `json:"window,omitempty"`

	// Unlimited is true for a close request without an end: it lasts until an open
	// request ends it, and spec.window does not limit it.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// AcceptedAt is when the controller accepted the request. Requests take effect
	// in this order.
	AcceptedAt metav1.MicroTime `json:"acceptedAt"`

	// State is Planned before the time of the request, Waiting while an open
	// request needs more approvals, InForce while the request takes effect, and
	// Ended afterwards. Each of at most 8 users can have one waiting request. It
	// is dropped when a user closes the Gate, and after its window, spec.window or
	// 7 days.
	State RequestState `json:"state"`

	// Approvals lists the approvals of an open request by users other than its
	// requester, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Approvals []RequestApproval `json:"approvals,omitempty"`

	// Stamped is true if the API server has recorded the requester. Only a stamped
	// request can be approved.
	// +optional
	Stamped bool `json:"stamped,omitempty"`

	// Emergency is true for an open request that takes effect without approvals,
	// because its requester may open the Gate in an emergency.
	// +optional
	Emergency bool `json:"emergency,omitempty"`

	// Until is when the request ends, by its window or by spec.window. A longer
	// spec.window never moves it. Missing for an open request without an end, and
	// for a close request that has not ended.
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`

	// EndedAt is when a request for the opposite action ended this one. Missing if
	// none has.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`

	// RequestedBy is the requester. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// Message is the reason that the requester gave.
	// +optional
	Message string `json:"message,omitempty"`

	// Source of the request: webhook if a GateReceiver made it, otherwise
	// annotation. A request from a webhook does not end a close request by a user.
	Source string `json:"source"`
}

// RequestApproval is one person's approval of an open request.
type RequestApproval struct {
	// ApprovedBy is the name of the approver, as the API server stamped it, cut to
	// 339 bytes.
	ApprovedBy string `json:"approvedBy"`

	// RecordedAt is when the controller recorded the approval.
	RecordedAt metav1.MicroTime `json:"recordedAt"`
}
