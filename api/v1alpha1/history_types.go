package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxHistory is the number of entries that status.history keeps. At most half
	// of them are about passes.
	MaxHistory = 50

	// MaxHistoryBytes is how many bytes the texts of status.history have
	// together. Of a Gate with long reasons, fewer entries are kept.
	MaxHistoryBytes = 16 << 10
)

// HistoryEntry records a change of the state of a Gate, or a request that did
// not change its state at once.
type HistoryEntry struct {
	// At is when it happened, in the time of the controller.
	At metav1.Time `json:"at"`

	// State of the Gate from then on: closed or opened. Missing if the entry is
	// only about a request or a pass.
	// +optional
	State State `json:"state,omitempty"`

	// Reason of the state, such as OpenPeriod: one of the reasons of the condition
	// Opened. For a request: RequestAccepted, RequestPlanned, RequestWithdrawn,
	// RequestRefused or RequestApproved. For a pass, which is one reconciliation
	// of a held target: PassGranted, PassEnded or PassRefused.
	Reason string `json:"reason"`

	// Target of a pass, such as Kustomization shop/web. Missing for other entries.
	// +optional
	Target string `json:"target,omitempty"`

	// Outcome of a pass that has ended: Succeeded or Failed, like the condition
	// Ready of the target, or TimedOut, Closed, Opened, Suspended or Interrupted.
	// Missing for other entries.
	// +optional
	Outcome string `json:"outcome,omitempty"`

	// Period is the name of the period that decided. Missing if none did.
	// +optional
	Period string `json:"period,omitempty"`

	// Exception is the name of the GateException that decided. Missing if
	// none did.
	// +optional
	Exception string `json:"exception,omitempty"`

	// Until is when the state or the request was expected to end. Missing if no
	// end was known.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Action of the request: open or close. Missing if no request caused the
	// entry.
	// +optional
	Action RequestAction `json:"action,omitempty"`

	// RequestedAt is when the request takes effect. Missing if no request caused
	// the entry.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// RequestedBy is the requester: a user, or GateReceiver with its namespace and
	// name. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// Message is the reason that the requester gave.
	// +optional
	Message string `json:"message,omitempty"`

	// ApprovedBy lists the approvers of the request, separated by commas, cut to
	// 96 bytes. The events about the approvals have all names. Missing if there
	// are none.
	// +optional
	ApprovedBy string `json:"approvedBy,omitempty"`

	// Emergency is true if the request took effect without the required approvals,
	// because it was an emergency.
	// +optional
	Emergency bool `json:"emergency,omitempty"`

	// Refused is why the request or the pass was refused. Missing if it was not.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// DecidedBy returns the name of the period or exception that decided, empty if
// none did.
func (in *HistoryEntry) DecidedBy() string { return cmp.Or(in.Period, in.Exception) }
