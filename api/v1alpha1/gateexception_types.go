package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

const (
	// GateExceptionKind is the kind of a GateException.
	GateExceptionKind = "GateException"

	// MaxExceptionDuration is the longest time from validFrom to validUntil.
	MaxExceptionDuration = 90 * 24 * time.Hour

	// MaxEffectiveExceptions is how many exceptions of a Gate can take effect
	// before they are over. If there are more, those created last are broken. It
	// bounds the time of a decision.
	MaxEffectiveExceptions = 20

	// MaxTTLAfterExpired is the longest spec.ttlAfterExpired, ten years.
	MaxTTLAfterExpired = 87600 * time.Hour

	// GateLabel is on a GateException and has the name of its Gate. It is missing
	// if that name is longer than the 63 characters of a label.
	GateLabel = "gating.toolkit.fluxcd.io/gate"

	// ExpiredLabel is on a GateException whose present spec is over, with the
	// value true. The policy gate-exception-overlap does not evaluate such
	// exceptions. Only the controller sets it.
	ExpiredLabel = "gating.toolkit.fluxcd.io/expired"
)

// ExceptionType says how the windows of a GateException change the schedule of
// its Gate.
// +kubebuilder:validation:Enum=extend;suspend;replace
type ExceptionType string

const (
	// ExceptionExtend takes the Gate out of its default state in the windows, in
	// addition to the schedule.
	ExceptionExtend ExceptionType = "extend"
	// ExceptionSuspend keeps the Gate in its default state in the windows.
	ExceptionSuspend ExceptionType = "suspend"
	// ExceptionReplace takes the Gate out of its default state in the windows, and
	// at no other time.
	ExceptionReplace ExceptionType = "replace"
)

// GateExceptionSpec is a deviation from the schedule of one Gate. It expires
// by itself.
// +kubebuilder:validation:XValidation:rule="self.validFrom < self.validUntil",message="validUntil must be later than validFrom"
// +kubebuilder:validation:XValidation:rule="self.validUntil - self.validFrom <= duration('2160h')",message="an exception lasts at most 90 days: validUntil must be at most 2160h after validFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || self.type == 'suspend'",message="leadTime is for type suspend only: the others start nothing before their windows"
// +kubebuilder:validation:XValidation:rule="self.type == 'replace' || has(self.windows) && size(self.windows) > 0",message="an exception needs windows, except one of type replace: without any it keeps the gate in its default state"
type GateExceptionSpec struct {
	// GateRef names the Gate, in the same namespace. The Gate need not exist yet.
	// Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="gateRef is immutable: delete the exception and create another one"
	// +required
	GateRef GateReference `json:"gateRef"`

	// Type says how the windows change the schedule of the Gate: extend adds them
	// to it, suspend takes them out of it, and replace uses them instead of it.
	// The schedule is the times when the windows and close periods of the Gate
	// take it out of its default state. So with default: closed, extend opens the
	// Gate in the windows, and suspend keeps it closed in them.
	// +required
	Type ExceptionType `json:"type"`

	// ValidFrom is when the exception begins to apply: a time in RFC 3339 with
	// whole seconds, such as 2026-12-19T00:00:00Z.
	// +kubebuilder:validation:XValidation:rule="self > timestamp('0001-01-01T00:00:00Z') && timestamp(int(self)) == self",message="must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	// +required
	ValidFrom metav1.Time `json:"validFrom"`

	// ValidUntil is when the exception stops applying: a time in RFC 3339 with
	// whole seconds, later than validFrom, by at most 2160h (90 days).
	// +kubebuilder:validation:XValidation:rule="self > timestamp('0001-01-01T00:00:00Z') && timestamp(int(self)) == self",message="must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	// +required
	ValidUntil metav1.Time `json:"validUntil"`

	// LeadTime is how long before each window the schedule starts nothing new.
	// A reconciliation that would start less than this time before a window waits
	// until the window is over. One that is running goes on until the window. Only
	// for type suspend. From 1s to 2160h (90 days), such as 1h. If omitted, there
	// is none.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 90 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('2160h')",message="leadTime must be a duration from 1s to 2160h (90 days), such as 1h"
	// +optional
	LeadTime *Duration `json:"leadTime,omitempty"`

	// Windows are the periods in which the exception changes the schedule, written
	// as in a Gate. Their time zone defaults to spec.timeZone of the Gate. Their
	// names are unique in the exception: a period of the Gate, or a window of
	// another exception, may have the same name. Time outside validFrom and
	// validUntil does not count. At most 100. Required for types extend and
	// suspend. An exception of type replace without windows keeps the Gate in its
	// default state. None of them is a calendar.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(w, !has(w.calendar))",message="a window of an exception has no calendar, give it start and end, a schedule, or from and until"
	// +listType=map
	// +listMapKey=name
	// +optional
	Windows []Period `json:"windows,omitempty"`

	// TTLAfterExpired is how long after validUntil the controller deletes the
	// exception, from 0s to 87600h (10 years), such as 720h. If omitted, it is
	// kept for audit until somebody deletes it. Omit it for an exception in Git,
	// and remove the exception there: Flux would create it again.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 3650 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="ttlAfterExpired must be a duration of at most 87600h (10 years), such as 720h"
	// +optional
	TTLAfterExpired *Duration `json:"ttlAfterExpired,omitempty"`
}

// GateReference names a Gate in the same namespace.
type GateReference struct {
	// Name of the Gate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// ExceptionState says where in its life a GateException is.
// +kubebuilder:validation:Enum=Pending;Active;Expired
type ExceptionState string

const (
	// ExceptionPending does not apply yet, or not at present. The condition Active
	// says why.
	ExceptionPending ExceptionState = "Pending"
	// ExceptionActive applies.
	ExceptionActive ExceptionState = "Active"
	// ExceptionExpired no longer applies, and never will unless somebody edits it.
	ExceptionExpired ExceptionState = "Expired"
)

// Approval is one person's approval of a GateException. An author of the
// exception cannot approve it.
type Approval struct {
	// By is the user who approved, as the API server stamped it.
	// +kubebuilder:validation:MaxLength=512
	By string `json:"by"`

	// At is when the controller saw the approval.
	At metav1.Time `json:"at"`

	// Generation of the exception that was approved. The approval does not count
	// for any other.
	Generation int64 `json:"generation"`
}

// GateExceptionStatus is the observed state of a GateException.
type GateExceptionStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation of the exception that the
	// controller reconciled, -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State of the exception: Pending, Active or Expired.
	// +optional
	State ExceptionState `json:"state,omitempty"`

	// Approvals of this generation of the exception, oldest first, each by a
	// person who did not write it. At most 32. Without config/policies there are
	// none.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Approvals []Approval `json:"approvals,omitempty"`

	// Conditions of the exception: Active, Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GateException is a time-bound deviation from the schedule of one Gate.
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=gtex,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:selectablefield:JSONPath=".spec.gateRef.name"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gate",type="string",JSONPath=".spec.gateRef.name"
// +kubebuilder:printcolumn:name="Type",type="string",JSONPath=".spec.type"
// +kubebuilder:printcolumn:name="State",type="string",JSONPath=".status.state"
// +kubebuilder:printcolumn:name="From",type="string",JSONPath=".spec.validFrom"
// +kubebuilder:printcolumn:name="Until",type="string",JSONPath=".spec.validUntil"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
type GateException struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec GateExceptionSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status GateExceptionStatus `json:"status,omitzero"`
}

// GateExceptionList is a list of GateExceptions.
// +kubebuilder:object:root=true
type GateExceptionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GateException `json:"items"`
}

// GetConditions returns the conditions of the exception.
func (in *GateException) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the exception.
func (in *GateException) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// ExpiredBy returns whether the exception is over at an instant.
func (in *GateException) ExpiredBy(now time.Time) bool { return !now.Before(in.Spec.ValidUntil.Time) }
