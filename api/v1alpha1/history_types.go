package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxHistory is the maximum number of entries in status.history. At most half
	// of them are about passes.
	MaxHistory = 50

	// MaxHistoryBytes is the maximum total size of the texts in status.history, in
	// bytes. If the texts are longer, fewer entries are kept.
	MaxHistoryBytes = 16 << 10
)

// HistoryEntry records a change of the state of a Gate, a request that did not
// immediately change the state, or a pass.
type HistoryEntry struct {
	// at is the time of the change, the request or the pass, according to the
	// clock of the controller.
	At metav1.Time `json:"at"`

	// state is the state after the change: closed or opened. It is the state of
	// the Gate, or of the listed targets if targets is set. Missing if the entry
	// is only about a request or a pass, or about the end of an exception with
	// targets.
	// +optional
	State State `json:"state,omitempty"`

	// reason is the reason of the state, such as OpenPeriod, which is one of the
	// reasons of the condition Opened. For a request, it is RequestAccepted,
	// RequestPlanned, RequestWithdrawn, RequestRefused or RequestApproved. For a
	// pass, it is PassGranted, PassEnded or PassRefused. For an exception with
	// targets, it is OverlayStarted or OverlayEnded.
	Reason string `json:"reason"`

	// target is the target of a pass, such as Kustomization shop/web. Missing for
	// other entries.
	// +optional
	Target string `json:"target,omitempty"`

	// targets are the targets to which the request or the exception is limited, at
	// most three of them in at most 256 bytes, such as Kustomization/apps and 2
	// more. Missing for other entries.
	// +optional
	Targets string `json:"targets,omitempty"`

	// outcome is the outcome of a pass that has ended: Succeeded or Failed,
	// according to the condition Ready of the target, or TimedOut, Closed, Opened,
	// Suspended or Interrupted. Missing for other entries.
	// +optional
	Outcome string `json:"outcome,omitempty"`

	// period is the name of the period that determined the state. Missing if no
	// period did.
	// +optional
	Period string `json:"period,omitempty"`

	// exception is the name of the GateException that determined the state.
	// Missing if no exception did.
	// +optional
	Exception string `json:"exception,omitempty"`

	// until is the expected end of the state or the request. Missing if no end was
	// known.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// action is the action of the request: open or close. Missing if the entry is
	// not about a request.
	// +optional
	Action RequestAction `json:"action,omitempty"`

	// requestedAt is the time when the request takes effect. Missing if the entry
	// is not about a request.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// requestedBy is the name of the requester: a user, or GateReceiver followed
	// by its namespace and name. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// message is the reason that the requester gave.
	// +optional
	Message string `json:"message,omitempty"`

	// approvedBy lists the approvers of the request, separated by commas and cut
	// to 96 bytes. All names are in the events about the approvals. Missing if
	// there are none.
	// +optional
	ApprovedBy string `json:"approvedBy,omitempty"`

	// emergency is true if the request took effect without the required approvals,
	// because the requester declared an emergency.
	// +optional
	Emergency bool `json:"emergency,omitempty"`

	// refused is the reason why the request or the pass was refused. Missing if it
	// was accepted.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// DecidedBy returns the name of the period or exception that determined the
// state, empty if there is none.
func (in *HistoryEntry) DecidedBy() string { return cmp.Or(in.Period, in.Exception) }
