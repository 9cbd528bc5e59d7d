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
	// SourceAnnotation is the source of a request that was made by annotating the
	// Gate.
	SourceAnnotation = "annotation"
	// SourceWebhook is the source of a request that a GateReceiver made because of
	// a webhook.
	SourceWebhook = "webhook"
)

// ReceiverRequester is the prefix of the requester of a request that a
// GateReceiver made. The namespace and name of the GateReceiver follow.
const ReceiverRequester = GateReceiverKind + " "

// RequestState is the state of an accepted request.
// +kubebuilder:validation:Enum=Planned;Waiting;InForce;Ended
type RequestState string

const (
	// RequestPlanned means that the time of the request is in the future.
	RequestPlanned RequestState = "Planned"
	// RequestWaiting means that the time of an open request has passed, but that
	// the request needs more approvals. It does not open the Gate.
	RequestWaiting RequestState = "Waiting"
	// RequestInForce means that the request is in force.
	RequestInForce RequestState = "InForce"
	// RequestEnded means that the request has ended, because its duration or
	// spec.window has passed, or because of a request for the opposite action.
	RequestEnded RequestState = "Ended"
)

const (
	// MaxRequestTargets is the maximum number of targets in one request.
	MaxRequestTargets = 16
	// MaxLimitedRequests is the maximum number of requests with targets that are
	// in force, planned or waiting for approval for one Gate.
	MaxLimitedRequests = 12
)

// RequestTarget is a target that a request is limited to.
type RequestTarget struct {
	// kind is the kind of the target.
	Kind string `json:"kind"`

	// name is the name of the target.
	Name string `json:"name"`

	// namespace is the namespace of the target. Missing if it is the namespace of
	// the Gate.
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// String returns KIND/NAME, or KIND/NAMESPACE/NAME if the namespace is set.
func (in RequestTarget) String() string {
	if in.Namespace == "" {
		return in.Kind + "/" + in.Name
	}
	return in.Kind + "/" + in.Namespace + "/" + in.Name
}

// HandledRequest records the handled values of the annotation for an action.
// Requests are edge-triggered: each value is handled once. A value with an
// earlier time than the last request that began is refused, because Flux may
// have restored it from Git.
type HandledRequest struct {
	// action is the action of the annotation: open or close.
	Action RequestAction `json:"action"`

	// lastHandled is the last value that the controller handled, whether it
	// accepted or refused the request.
	LastHandled string `json:"lastHandled"`

	// lastRequestedBy is the requester of lastHandled. A close request with the
	// same value by another user is a different request.
	// +optional
	LastRequestedBy string `json:"lastRequestedBy,omitempty"`

	// earlier lists the values that were handled before lastHandled, newest first,
	// at most 8. An open request with one of these values is refused, because Flux
	// may have restored it from Git.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	Earlier []string `json:"earlier,omitempty"`

	// requestedAt is the time in the last accepted value whose time has passed.
	// Missing if there is none.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// window is the duration in that value. Missing if it has none.
	// +optional
	Window *Duration `json:"window,omitempty"`

	// unlimited is true if that value requests a close without an end.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// targets lists the targets in that value. Missing if it has none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Targets []RequestTarget `json:"targets,omitempty"`

	// requestedBy is the requester of that value. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`
}

// AcceptedRequest is an accepted request. It stays in the status if Flux
// removes the annotation from a Gate in Git.
type AcceptedRequest struct {
	// action is the requested action: open or close.
	Action RequestAction `json:"action"`

	// requestedAt is the time when the request takes effect. For a request that
	// waited for approval, it is the time of the last approval.
	RequestedAt metav1.MicroTime `json:"requestedAt"`

	// targets limit the request to these targets of the Gate, at most 16. While it
	// is in force, status.overlays has their state. It does not end a request for
	// the whole Gate: after its end, the targets have the state of the Gate again.
	// A request for the whole Gate ends it if the two are for opposite actions. A
	// target is removed here when another request takes it over. At most 12
	// requests of a Gate have targets. Missing for a request for the whole Gate.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Targets []RequestTarget `json:"targets,omitempty"`

	// window is the duration in the request. An open request lasts for window or
	// spec.window, whichever is shorter. A close request lasts for window, or for
	// spec.window if it has no window. Without both, a request lasts until a
	// request for the opposite action.
	// +optional
	Window *Duration `json:"window,omitempty"`

	// unlimited is true for a close request that lasts until an open request ends
	// it. spec.window does not limit it.
	// +optional
	Unlimited bool `json:"unlimited,omitempty"`

	// acceptedAt is the time when the controller accepted the request. An open
	// request does not end a close request that was accepted later. Approvals
	// refer to an open request by this time.
	AcceptedAt metav1.MicroTime `json:"acceptedAt"`

	// state is Planned before the time of the request, Waiting while an open
	// request needs more approvals, InForce while the request is in force, and
	// Ended afterwards. Requests of at most 8 users can wait. A new request
	// replaces the waiting request of the same user for the same targets. A
	// waiting request is dropped when a user closes the Gate or one of its
	// targets, and at until.
	State RequestState `json:"state"`

	// approvals lists the approvals of an open request by users other than its
	// requester, at most 10.
	// +kubebuilder:validation:MaxItems=10
	// +listType=atomic
	// +optional
	Approvals []RequestApproval `json:"approvals,omitempty"`

	// stamped is true if the API server has stamped the requester. Only a stamped
	// request can be approved.
	// +optional
	Stamped bool `json:"stamped,omitempty"`

	// emergency is true for an open request that takes effect without approvals,
	// because its requester declared an emergency and has the permission to do so.
	// +optional
	Emergency bool `json:"emergency,omitempty"`

	// until is the time when the request ends because of its duration or
	// spec.window. A later change of spec.window cannot move it to a later time.
	// For a waiting request, it is the time when the request is dropped, at most 7
	// days after requestedAt. Missing for an open request without an end, and for
	// a close request that has not ended.
	// +optional
	Until *metav1.MicroTime `json:"until,omitempty"`

	// endedAt is the time of the request for the opposite action that ended this
	// one. Missing if there is none.
	// +optional
	EndedAt *metav1.MicroTime `json:"endedAt,omitempty"`

	// requestedBy is the name of the requester. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// message is the reason that the requester gave.
	// +optional
	Message string `json:"message,omitempty"`

	// source is webhook if a GateReceiver made the request, otherwise annotation.
	// An open request from a webhook does not end a close request by a user.
	Source string `json:"source"`
}

// RequestApproval is the approval of an open request by one user.
type RequestApproval struct {
	// approvedBy is the name of the approver, as stamped by the API server, cut to
	// 339 bytes.
	ApprovedBy string `json:"approvedBy"`

	// recordedAt is the time when the controller recorded the approval.
	RecordedAt metav1.MicroTime `json:"recordedAt"`
}
