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

	// MaxExceptionDuration is the maximum time from validFrom to validUntil.
	MaxExceptionDuration = 90 * 24 * time.Hour

	// MaxEffectiveExceptions is the maximum number of exceptions of a Gate that
	// have not ended and take effect. If there are more, the newest that only
	// close exceed the limit first, then the newest of the others. An exception
	// over the limit does not open the Gate, and keeps it closed if it can close
	// it. The limit bounds the time of a decision.
	MaxEffectiveExceptions = 20

	// MaxExceptionTargets is the maximum number of entries in spec.targets.
	MaxExceptionTargets = 16

	// MaxTTLAfterExpired is the maximum of spec.ttlAfterExpired, ten years.
	MaxTTLAfterExpired = 87600 * time.Hour

	// GateLabel is on a GateException. Its value is the name of the Gate. The
	// label is missing if the name has more than 63 characters, the maximum length
	// of a label value.
	GateLabel = api.Group + "/gate"

	// ExpiredLabel is on a GateException that has ended according to its current
	// spec. Its value is true. The policy gate-exception-overlap ignores such
	// exceptions. Only the controller sets it.
	ExpiredLabel = api.Group + "/expired"
)

// GateExceptionSpec specifies a temporary change of the schedule of a Gate.
// +kubebuilder:validation:XValidation:rule="self.validFrom < self.validUntil",message="validUntil must be later than validFrom"
// +kubebuilder:validation:XValidation:rule="self.validUntil - self.validFrom <= duration('2160h')",message="an exception lasts at most 90 days: validUntil must be at most 2160h after validFrom"
// +kubebuilder:validation:XValidation:rule="has(self.default) || has(self.openPeriods) && size(self.openPeriods) > 0 || has(self.closePeriods) && size(self.closePeriods) > 0",message="an exception must have openPeriods, closePeriods or a default: to keep the gate closed throughout, write default: closed"
// +kubebuilder:validation:XValidation:rule="(has(self.openPeriods) ? size(self.openPeriods) : 0) + (has(self.closePeriods) ? size(self.closePeriods) : 0) <= 100",message="an exception can have at most 100 openPeriods and closePeriods together"
// +kubebuilder:validation:XValidation:rule="!has(self.openPeriods) || !has(self.closePeriods) || [self.openPeriods.map(p, p.name)].all(names, !self.closePeriods.exists(p, p.name in names))",message="openPeriods and closePeriods must not have a name in common: rename one of the periods"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || !has(self.default)",message="leadTime must not be set together with default, because default replaces the schedule that leadTime would delay: remove leadTime or default"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || has(self.default) || (has(self.openPeriods) && size(self.openPeriods) > 0) != (has(self.closePeriods) && size(self.closePeriods) > 0)",message="leadTime needs exactly one of openPeriods and closePeriods: write two exceptions, or remove leadTime"
// +kubebuilder:validation:XValidation:rule="has(self.timeZone) || !has(self.openPeriods) || self.openPeriods.all(p, has(p.timeZone) || !has(p.start) && !has(p.schedule) && (!has(p.from) || p.from.size() > 16))",message="openPeriods with start, schedule, dates or local times need a time zone, because an exception does not use that of the gate: set timeZone, such as timeZone: Europe/Oslo"
// +kubebuilder:validation:XValidation:rule="has(self.timeZone) || !has(self.closePeriods) || self.closePeriods.all(p, has(p.timeZone) || !has(p.start) && !has(p.schedule) && (!has(p.from) || p.from.size() > 16))",message="closePeriods with start, schedule, dates or local times need a time zone, because an exception does not use that of the gate: set timeZone, such as timeZone: Europe/Oslo"
// +kubebuilder:validation:XValidation:rule="!has(self.leadTime) || !has(self.targets)",message="leadTime must not be set together with targets, because it delays the schedule of the whole gate: remove leadTime or targets"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.map(t, (has(t.matchLabels) ? size(t.matchLabels) : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? size(t.namespaceSelector.matchLabels) : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, 1 + (has(e.values) ? size(e.values) : 0)).sum() : 0) : 0)).sum() <= 64",message="the selectors in targets can have at most 64 labels, expressions and values together: label the objects, and select them by one label"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.map(t, size(t.kind) + size(t.name) + (has(t.apiVersion) ? size(t.apiVersion) : 0) + (has(t.__namespace__) ? size(t.__namespace__) : 0) + (has(t.matchLabels) ? t.matchLabels.map(k, size(k)).sum() : 0) + (has(t.matchExpressions) ? t.matchExpressions.map(e, size(e.key)).sum() : 0) + (has(t.namespaceSelector) ? (has(t.namespaceSelector.matchLabels) ? t.namespaceSelector.matchLabels.map(k, size(k)).sum() : 0) + (has(t.namespaceSelector.matchExpressions) ? t.namespaceSelector.matchExpressions.map(e, size(e.key)).sum() : 0) : 0)).sum() <= 4096",message="the references and the keys of labels in targets can have at most 4,096 characters together: label the objects, and select them by one label"
type GateExceptionSpec struct {
	// gateRef refers to the Gate, in the same namespace. The Gate need not exist
	// yet. Immutable.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="gateRef is immutable: delete the exception and create another one"
	// +required
	GateRef GateReference `json:"gateRef"`

	// validFrom is the time when the exception begins to apply. A time in RFC 3339
	// with whole seconds, such as 2026-12-19T00:00:00Z.
	// +kubebuilder:validation:XValidation:rule="self > timestamp('0001-01-01T00:00:00Z') && timestamp(int(self)) == self",message="must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	// +required
	ValidFrom metav1.Time `json:"validFrom"`

	// validUntil is the time when the exception ends. A time in RFC 3339 with
	// whole seconds, later than validFrom by at most 2160h (90 days).
	// +kubebuilder:validation:XValidation:rule="self > timestamp('0001-01-01T00:00:00Z') && timestamp(int(self)) == self",message="must be a time in RFC 3339 with whole seconds such as 2026-12-19T00:00:00Z"
	// +required
	ValidUntil metav1.Time `json:"validUntil"`

	// targets limits the exception to those targets of the Gate that one of the
	// entries matches. The periods then apply to these targets only, and the
	// state of the Gate does not change. An exception with targets takes
	// precedence over exceptions without targets. Among exceptions with targets,
	// closed takes precedence. Each entry is written as in spec.targets of a
	// Gate. At most 16. If omitted, the exception applies to the Gate. Not
	// together with leadTime.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Targets []TargetReference `json:"targets,omitempty"`

	// timeZone is the time zone of start, end, schedule, dates and local times in
	// the periods. It is a name in the IANA database, such as Europe/Oslo. The
	// time zone of the Gate is not used, so that a change of the Gate does not
	// move its exceptions. Required if a period has one of these fields and no
	// timeZone of its own.
	// +optional
	TimeZone TimeZone `json:"timeZone,omitempty"`

	// default is the state outside of the openPeriods and closePeriods of the
	// exception: closed or opened. While the exception is valid, it replaces the
	// default and the periods of the Gate, except close periods with override:
	// Deny. If omitted, the default and the periods of the Gate apply outside of
	// the periods of the exception.
	// +kubebuilder:validation:Enum=closed;opened
	// +optional
	Default State `json:"default,omitempty"`

	// openPeriods lists the periods in which the exception opens the Gate. They
	// take precedence over the periods of the Gate, except close periods with
	// override: Deny. They have an effect only between validFrom and validUntil.
	// At most 100 together with closePeriods, all with different names. Calendars
	// are not allowed. Required if both closePeriods and default are omitted.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.calendar))",message="openPeriods of an exception must not have a calendar: write start and end, schedule and duration, or from and until"
	// +listType=map
	// +listMapKey=name
	// +optional
	OpenPeriods []Period `json:"openPeriods,omitempty"`

	// closePeriods lists the periods in which the exception closes the Gate. They
	// have the same form as openPeriods and take precedence over them. An open
	// request opens the Gate in these periods, too.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.calendar))",message="closePeriods of an exception must not have a calendar: write start and end, schedule and duration, or from and until"
	// +listType=map
	// +listMapKey=name
	// +optional
	ClosePeriods []Period `json:"closePeriods,omitempty"`

	// leadTime is a time before each period of the exception in which the schedule
	// of the Gate does not change to the opposite state: it does not open the Gate
	// before closePeriods, and does not close it before openPeriods. The change
	// takes place after the period instead. A state that began before the lead
	// time continues until the period. Requests, close periods with override:
	// Deny, notBefore, notAfter and dependsOn are not delayed. From 1s to 2160h
	// (90 days), such as 1h. Requires exactly one of openPeriods and closePeriods,
	// and no default. If omitted, no change is delayed.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 90 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('2160h')",message="leadTime must be a duration from 1s to 2160h (90 days), such as 1h"
	// +optional
	LeadTime *Duration `json:"leadTime,omitempty"`

	// ttlAfterExpired is how long after validUntil the controller deletes the
	// exception, from 0s to 87600h (10 years), such as 720h. If omitted, the
	// exception is kept for audits until a user deletes it. Omit it for an
	// exception in Git, because Flux would create the exception again.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 3650 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) <= duration('87600h')",message="ttlAfterExpired must be a duration of at most 87600h (10 years), such as 720h"
	// +optional
	TTLAfterExpired *Duration `json:"ttlAfterExpired,omitempty"`
}

// GateReference refers to a Gate in the same namespace.
type GateReference struct {
	// name is the name of the Gate.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of a Gate, such as production: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`
}

// Approval is the approval of a GateException by one user.
type Approval struct {
	// approvedBy is the name of the approver, as stamped by the API server. At
	// most 512 characters.
	// +kubebuilder:validation:MaxLength=512
	ApprovedBy string `json:"approvedBy"`

	// recordedAt is the time when the controller recorded the approval.
	RecordedAt metav1.Time `json:"recordedAt"`

	// generation is the approved generation of the exception. The approval does
	// not count for any other generation.
	Generation int64 `json:"generation"`
}

// GateExceptionStatus is the observed state of a GateException.
type GateExceptionStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// observedGeneration is the last generation that the controller reconciled, or
	// -1 if it has not reconciled the object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// approvals lists the approvals of the current generation, oldest first, at
	// most 32. Approvals by users who created the exception or changed its spec
	// are not included. Empty without config/policies.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Approvals []Approval `json:"approvals,omitempty"`

	// conditions of the GateException: Active, Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GateException is a temporary change of the schedule of a Gate.
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

// GetConditions returns the conditions of the GateException.
func (in *GateException) GetConditions() []metav1.Condition { return in.Status.Conditions }

// SetConditions replaces the conditions of the GateException.
func (in *GateException) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// OnlyCloses returns whether the exception can close its Gate, but not open
// it: it has closePeriods or default: closed, and no openPeriods. Such an
// exception may overlap others, which apply whenever it does not close the
// Gate.
func (in *GateException) OnlyCloses() bool {
	return len(in.Spec.OpenPeriods) == 0 && (in.Spec.Default == StateClosed || in.Spec.Default == "" && len(in.Spec.ClosePeriods) > 0)
}

// HasTargets returns whether the exception applies only to some targets of its
// Gate.
func (in *GateException) HasTargets() bool { return len(in.Spec.Targets) > 0 }

// ExpiredBy returns whether the exception has ended at the given time.
func (in *GateException) ExpiredBy(now time.Time) bool { return !now.Before(in.Spec.ValidUntil.Time) }
