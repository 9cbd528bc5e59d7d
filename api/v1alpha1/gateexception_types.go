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

	// MaxTTLAfterExpired is the longest spec.ttlAfterExpired, ten years.
	MaxTTLAfterExpired = 87600 * time.Hour

	// GateLabel is on a GateException and has the name of its Gate. It is missing if
	// that name is longer than the 63 characters of a label.
	GateLabel = "gating.toolkit.fluxcd.io/gate"
)

// ExceptionType says how the windows of a GateException change the schedule of
// its Gate.
// +kubebuilder:validation:Enum=extend;suspend;replace
type ExceptionType string

const (
	// ExceptionExtend puts the Gate out of its default state in the windows, besides
	// when the schedule does.
	ExceptionExtend ExceptionType = "extend"
	// ExceptionSuspend keeps the Gate in its default state in the windows.
	ExceptionSuspend ExceptionType = "suspend"
	// ExceptionReplace puts the Gate out of its default state in the windows, and only
	// then.
	ExceptionReplace ExceptionType = "replace"
)

// GateExceptionSpec is a deviation from the schedule of one Gate. It expires by
// itself.
// +kubebuilder:validation:XValidation:rule="self.validFrom < self.validUntil",message="validUntil must be later than validFrom"
// +kubebuilder:validation:XValidation:rule="self.validUntil - self.validFrom <= duration('2160h')",message="an exception lasts at most 90 days: validUntil must be at most 2160h after validFrom"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || self.type == 'suspend'",message="leadTime is for type suspend only: the others start nothing before their windows"
// +kubebuilder:validation:XValidation:rule="self.type == 'replace' || has(self.windows) && size(self.windows) > 0",message="an exception needs windows, but for one of type replace: without any it keeps the gate in its default state"
type GateExceptionSpec struct {
	// GateRef names the Gate, in the same namespace. It need not exist yet. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="gateRef is immutable: delete the exception and create another one"
	// +required
	GateRef GateReference `json:"gateRef"`

	// Type says what the windows mean. Where the schedule is the time in which the
	// windows and close periods of the Gate put it out of its default state: extend
	// adds the windows to the schedule, suspend takes them away from it, replace has
	// the windows instead of it.
	// +required
	Type ExceptionType `json:"type"`

	// ValidFrom is the first instant at which the exception applies, in whole seconds.
	// +kubebuilder:validation:XValidation:rule="self > timestamp('0001-01-01T00:00:00Z') && timestamp(int(self)) == self",message="must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	// +required
	ValidFrom metav1.Time `json:"validFrom"`

	// ValidUntil is the first instant at which the exception applies no more, in whole
	// seconds. Must be later than validFrom and at most 2160h (90 days) after it.
	// +kubebuilder:validation:XValidation:rule="self > timestamp('0001-01-01T00:00:00Z') && timestamp(int(self)) == self",message="must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	// +required
	ValidUntil metav1.Time `json:"validUntil"`

	// LeadTime is for type suspend: what the schedule would start so short before a
	// window starts does not start before that window ends. What runs already when
	// the lead begins runs on until the window. From 1s to 2160h (90 days); omitted
	// means none.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('2160h')",message="leadTime must be a duration from 1s to 2160h (90 days), such as 1h"
	// +optional
	LeadTime *metav1.Duration `json:"leadTime,omitempty"`

	// Windows are periods as in a Gate. Those that name no zone are in spec.timeZone
	// of the Gate. Needed but for type replace: without any, that keeps the Gate in
	// its default state.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Windows []Period `json:"windows,omitempty"`

	// TTLAfterExpired is how long after validUntil the controller deletes the
	// exception, from 0s to 87600h (ten years). Omitted, it is kept for audit until
	// somebody deletes it. One that is in Git comes back and expires at once: remove
	// it there.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="ttlAfterExpired must be a duration of at most 87600h (10 years), such as 720h"
	// +optional
	TTLAfterExpired *metav1.Duration `json:"ttlAfterExpired,omitempty"`
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
	// ExceptionPending does not apply yet, or not at present. The condition Active says
	// why.
	ExceptionPending ExceptionState = "Pending"
	// ExceptionActive applies.
	ExceptionActive ExceptionState = "Active"
	// ExceptionExpired applies no more, and never will again as it is.
	ExceptionExpired ExceptionState = "Expired"
)

// Approval is one person's approval of a GateException.
type Approval struct {
	// By is the user who approved, as the API server stamped it.
	// +kubebuilder:validation:MaxLength=512
	By string `json:"by"`

	// At is when the controller saw the approval.
	At metav1.Time `json:"at"`

	// Generation of the exception that was approved. It does not count for another.
	Generation int64 `json:"generation"`
}

// GateExceptionStatus is the observed state of a GateException.
type GateExceptionStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation that was reconciled.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// State of the exception: Pending, Active or Expired.
	// +optional
	State ExceptionState `json:"state,omitempty"`

	// Approvals of this generation of the exception, the oldest first.
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
// +kubebuilder:printcolumn:name="Ready",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",priority=1,JSONPath=".status.conditions[?(@.type==\"Active\")].message"
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
