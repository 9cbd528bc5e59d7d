package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxHistory is the number of entries that status.history keeps. Passes have
	// half of them at most.
	MaxHistory = 50

	// MaxHistoryBytes is how many bytes the texts of status.history have
	// together. Of a Gate with long reasons, fewer entries are kept.
	MaxHistoryBytes = 16 << 10
)

// HistoryEntry is what happened to a Gate at an instant: its state changed, or
// it received a request that did not change its state at once.
type HistoryEntry struct {
	// At is when it happened, by the clock of the controller.
	At metav1.Time `json:"at"`

	// State that the Gate has since then: closed or opened. Missing if the entry
	// is about a request alone.
	// +optional
	State State `json:"state,omitempty"`

	// Reason of that state, as of the condition Opened, such as OpenPeriod.
	// RequestAccepted, RequestPlanned, RequestWithdrawn, RequestRefused or
	// RequestApproved if the entry is about a request alone. PassGranted,
	// PassEnded or PassRefused if it is about one reconciliation of a target.
	Reason string `json:"reason"`

	// Target whose reconciliation passes, such as Kustomization shop/web. Missing
	// unless the entry is about a pass.
	// +optional
	Target string `json:"target,omitempty"`

	// Outcome says how a pass ended: Succeeded or Failed as the condition Ready of
	// the target says, TimedOut, Closed, Opened, Suspended or Interrupted. Missing
	// unless a pass ended.
	// +optional
	Outcome string `json:"outcome,omitempty"`

	// Period is the name of the period that decided. Missing if none did.
	// +optional
	Period string `json:"period,omitempty"`

	// Exception is the name of the GateException that decided. Missing if
	// none did.
	// +optional
	Exception string `json:"exception,omitempty"`

	// Until is when the state was to end at that time, or when the request ends.
	// Missing if no end was in sight.
	// +optional
	Until *metav1.Time `json:"until,omitempty"`

	// Action that was requested, if a request decided or if the entry is about
	// one.
	// +optional
	Action RequestAction `json:"action,omitempty"`

	// RequestedAt is when the request takes effect.
	// +optional
	RequestedAt *metav1.MicroTime `json:"requestedAt,omitempty"`

	// RequestedBy is the user who made the request, or GateReceiver and its
	// namespace and name. Empty if unknown.
	// +optional
	RequestedBy string `json:"requestedBy,omitempty"`

	// Message given with the request.
	// +optional
	Message string `json:"message,omitempty"`

	// ApprovedBy are the users who approved the request, separated by commas. Cut
	// to 96 bytes: the events about the approvals name all. Missing if there are
	// none.
	// +optional
	ApprovedBy string `json:"approvedBy,omitempty"`

	// Emergency is true if the request counted without approvals, because it was
	// an emergency.
	// +optional
	Emergency bool `json:"emergency,omitempty"`

	// Refused is why a request was refused. Missing if it was not.
	// +optional
	Refused string `json:"refused,omitempty"`
}

// DecidedBy returns the name of the period or exception that decided, empty if
// none did.
func (in *HistoryEntry) DecidedBy() string { return cmp.Or(in.Period, in.Exception) }
