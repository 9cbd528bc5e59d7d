package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api"
)

const (
	// GateExceptionKind is the kind of a GateException.
	GateExceptionKind = "GateException"

	// MaxExceptionDuration is the longest time from validFrom to validUntil.
	MaxExceptionDuration = 90 * 24 * time.Hour

	// MaxEffectiveExceptions is how many exceptions of a Gate, of those that have
	// not ended, can take effect. If there are more, those created last are
	// broken. It bounds the time of a decision.
	MaxEffectiveExceptions = 20

	// MaxExceptionTargets is the number of entries in spec.targets.
	MaxExceptionTargets = 16

	// MaxTTLAfterExpired is the longest spec.ttlAfterExpired, ten years.
	MaxTTLAfterExpired = 87600 * time.Hour

	// GateLabel is on a GateException and has the name of its Gate. It is missing
	// if that name is longer than the 63 characters of a label.
	GateLabel = api.Group + "/gate"

	// ExpiredLabel is on a GateException that has ended according to its current
	// spec, with the value true. The policy gate-exception-overlap does not
	// evaluate such exceptions. Only the controller sets it.
	ExpiredLabel = api.Group + "/expired"
)

// GateExceptionSpec is a deviation from the schedule of one Gate. It expires
// by itself.
// +kubebuilder:validation:XValidation:rule="self.validFrom < self.validUntil",message="validUntil must be later than validFrom"
// +kubebuilder:validation:XValidation:rule="self.validUntil - self.validFrom <= duration('2160h')",message="an exception lasts at most 90 days: validUntil must be at most 2160h after validFrom"
// +kubebuilder:validation:XValidation:rule="has(self.default) || has(self.openPeriods) && size(self.openPeriods) > 0 || has(self.closePeriods) && size(self.closePeriods) > 0",message="an exception must have openPeriods, closePeriods or a default: to keep the gate closed throughout, write default: closed"
// +kubebuilder:validation:XValidation:rule="(has(self.openPeriods) ? size(self.openPeriods) : 0) + (has(self.closePeriods) ? size(self.closePeriods) : 0) <= 100",message="an exception can have at most 100 openPeriods and closePeriods together"
// +kubebuilder:validation:XValidation:rule="!has(self.openPeriods) || !has(self.closePeriods) || [self.openPeriods.map(p, p.name)].all(names, !self.closePeriods.exists(p, p.name in names))",message="openPeriods and closePeriods must not have a name in common: rename one of the periods"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || !has(self.default)",message="leadTime must not be set together with default, which sets aside the schedule that it delays: remove leadTime or default"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || has(self.default) || (has(self.openPeriods) && size(self.openPeriods) > 0) != (has(self.closePeriods) && size(self.closePeriods) > 0)",message="leadTime needs exactly one of openPeriods and closePeriods: write two exceptions, or remove leadTime"
// +kubebuilder:validation:XValidation:rule="has(self.timeZone) || !has(self.openPeriods) || self.openPeriods.all(p, has(p.timeZone) || !has(p.start) && !has(p.schedule) && (!has(p.from) || p.from.size() > 16))",message="openPeriods with start, schedule, dates or local times need a time zone, because that of the gate does not count: set timeZone, such as timeZone: Europe/Oslo"
// +kubebuilder:validation:XValidation:rule="has(self.timeZone) || !has(self.closePeriods) || self.closePeriods.all(p, has(p.timeZone) || !has(p.start) && !has(p.schedule) && (!has(p.from) || p.from.size() > 16))",message="closePeriods with start, schedule, dates or local times need a time zone, because that of the gate does not count: set timeZone, such as timeZone: Europe/Oslo"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || !has(self.targets)",message="leadTime must not be set together with targets, because it delays the schedule of the whole gate: remove leadTime or targets"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.map(t, (has(t.matchLabels) ? size(t.matchLabels) : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? size(t.namespaceSelector.matchLabels) : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) : 0)).sum() <= 64",message="the selectors in targets can have at most 64 labels, expressions and values together: label the objects, and select them by one label"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.map(t, size(t.kind) + size(t.name) + (has(t.apiVersion) ? size(t.apiVersion) : 0) + (has(t.__namespace__) ? size(t.__namespace__) : 0) + (has(t.matchLabels) ? t.matchLabels.map(k, size(k)).sum() : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, size(e.key)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? t.namespaceSelector.matchLabels.map(k, size(k)).sum() : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, size(e.key)).sum() : 0) : 0)).sum() <= 4096",message="the references and the keys of labels in targets can have at most 4,096 characters together: label the objects, and select them by one label"
type GateExceptionSpec struct {
	// GateRef names the Gate, in the same namespace. The Gate need not exist yet.
	// Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="gateRef is immutable: delete the exception and create another one"
	// +required
	GateRef GateReference `json:"gateRef"`

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

	// Targets limits the exception to those targets of the Gate that one of the
	// entries matches. The periods then apply to these targets only, and the state
	// of the Gate does not change. They win over exceptions without targets. Among
	// exceptions with targets, closed wins. Each entry is written as in
	// spec.targets of a Gate. At most 16. If omitted, the exception applies to the
	// Gate. Not together with leadTime.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Targets []TargetReference `json:"targets,omitempty"`

	// TimeZone is the time zone of start, end, schedule, dates and local times in
	// the periods: a name of the IANA database, such as Europe/Oslo. That of the
	// Gate does not count, so that no edit of the Gate moves an exception.
	// Required if a period has one of these and no timeZone of its own.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`

	// Default is the state outside of openPeriods and closePeriods: closed or
	// opened. It sets the default and the periods of the Gate aside while the
	// exception is valid, except close periods with override: Deny. If omitted,
	// they decide outside of the periods of the exception.
	// +kubebuilder:validation:Enum=closed;opened
	// +optional
	Default State `json:"default,omitempty"`

	// OpenPeriods are when the exception opens the Gate, written as in a Gate.
	// They win over the periods of the Gate, except close periods with override:
	// Deny. Time outside validFrom and validUntil does not count. At most 100
	// together with closePeriods, with names that are unique in the exception.
	// None of them is a calendar. Required if closePeriods and default are
	// omitted.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.calendar))",message="openPeriods of an exception must not have a calendar: write start and end, schedule and duration, or from and until"
	// +listType=map
	// +listMapKey=name
	// +optional
	OpenPeriods []Period `json:"openPeriods,omitempty"`

	// ClosePeriods are when the exception closes the Gate. They have the same form
	// as openPeriods and win over them. An open request opens the Gate in these
	// periods, too.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.calendar))",message="closePeriods of an exception must not have a calendar: write start and end, schedule and duration, or from and until"
	// +listType=map
	// +listMapKey=name
	// +optional
	ClosePeriods []Period `json:"closePeriods,omitempty"`

	// LeadTime is the time before each period of the exception in which the
	// schedule of the Gate does not begin the opposite state: it does not open the
	// Gate before closePeriods, and does not close it before openPeriods. Such a
	// change waits until the period is over. A state that began earlier continues
	// until the period begins. Requests, close periods with override: Deny,
	// notBefore, notAfter and dependsOn are not delayed. From 1s to 2160h (90
	// days), such as 1h. Needs exactly one of openPeriods and closePeriods, and no
	// default. If omitted, nothing is delayed.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 90 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('2160h')",message="leadTime must be a duration from 1s to 2160h (90 days), such as 1h"
	// +optional
	LeadTime *Duration `json:"leadTime,omitempty"`

	// TTLAfterExpired is how long after validUntil the controller deletes the
	// exception, from 0s to 87600h (10 years), such as 720h. If omitted, it is
	// kept for audit until a user deletes it. Omit it for an exception in Git,
	// because Flux would create the exception again: remove it from Git instead.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 3650 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="ttlAfterExpired must be a duration of at most 87600h (10 years), such as 720h"
	// +optional
	TTLAfterExpired *Duration `json:"ttlAfterExpired,omitempty"`
}

// GateReference names a Gate in the same namespace.
type GateReference struct {
	// Name of the Gate.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of a Gate, such as production: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`
}

// Approval is one person's approval of a GateException. An author of the
// exception cannot approve it.
type Approval struct {
	// ApprovedBy is the name of the approver, as the API server stamped it, at
	// most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	ApprovedBy string `json:"approvedBy"`

	// RecordedAt is when the controller recorded the approval.
	RecordedAt metav1.Time `json:"recordedAt"`

	// Generation of the exception that was approved. The approval is void for any
	// other generation.
	Generation int64 `json:"generation"`
}

// GateExceptionStatus is the observed state of a GateException.
type GateExceptionStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation of the exception that the
	// controller reconciled, -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Approvals lists the approvals of this generation by users who did not write
	// it, oldest first, at most 32. Empty without config/policies.
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
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:resource:shortName=gtex,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:selectablefield:JSONPath=".spec.gateRef.name"
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Gate",type="string",JSONPath=".spec.gateRef.name"
// +kubebuilder:printcolumn:name="Reason",type="string",JSONPath=".status.conditions[?(@.type==\"Active\")].reason"
// +kubebuilder:printcolumn:name="From",type="string",JSONPath=".spec.validFrom"
// +kubebuilder:printcolumn:name="Until",type="string",JSONPath=".spec.validUntil"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Default",type="string",priority=1,JSONPath=".spec.default"
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

// OnlyCloses returns whether the exception has closePeriods or the default
// closed, and nothing that opens its Gate. Such an exception may overlap others.
// They decide where it does not close as if it did not exist.
func (in *GateException) OnlyCloses() bool {
	return len(in.Spec.OpenPeriods) == 0 && (in.Spec.Default == StateClosed || in.Spec.Default == "" && len(in.Spec.ClosePeriods) > 0)
}

// HasTargets returns whether the exception applies only to some targets of its
// Gate.
func (in *GateException) HasTargets() bool { return len(in.Spec.Targets) > 0 }

// ExpiredBy returns whether the exception has ended at an instant.
func (in *GateException) ExpiredBy(now time.Time) bool { return !now.Before(in.Spec.ValidUntil.Time) }
