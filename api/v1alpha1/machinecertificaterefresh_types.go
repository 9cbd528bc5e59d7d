package v1alpha1

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/apis/meta"
)

// MachineCertificateRefreshKind is the kind of a MachineCertificateRefresh.
const MachineCertificateRefreshKind = "MachineCertificateRefresh"

// Defaults of a MachineCertificateRefresh.
const (
	DefaultMachineWithin  = 720 * time.Hour
	DefaultMachineTTL     = "1y"
	DefaultMachineTimeout = time.Hour
)

// MachineCertificateRefreshSpec determines which Machines of Cluster API get
// new certificates, and when.
// +kubebuilder:validation:XValidation:rule="!self.ttl.matches('^[1-9][0-9]*(y|mo|d|h|m|s)$') || !self.within.matches('^(([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+|[0-9]{1,4}[dw])$') || (self.ttl.endsWith('mo') ? int(self.ttl.substring(0, size(self.ttl) - 2)) * 2592000 : int(self.ttl.substring(0, size(self.ttl) - 1)) * (self.ttl.endsWith('y') ? 31536000 : self.ttl.endsWith('d') ? 86400 : self.ttl.endsWith('h') ? 3600 : self.ttl.endsWith('m') ? 60 : 1)) >= 2 * (self.within.matches('[dw]$') ? int(self.within.substring(0, size(self.within) - 1)) * (self.within.endsWith('w') ? 7 : 1) * 86400 : duration(self.within).getSeconds())",message="ttl must be at least twice within: write a longer ttl, such as 60d for within: 720h, or a shorter within"
type MachineCertificateRefreshSpec struct {
	// GateRefs name the Gates, in the same namespace. From 1 to 10. A refresh
	// begins only while all of them are open. Shortly before the certificates
	// expire, spec.certificates of a closed Gate decides. A Gate that does not
	// exist, is suspended, has an invalid spec or mode Audit keeps all refreshes
	// from beginning.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	GateRefs []GateReference `json:"gateRefs"`

	// Selector selects Machines in the same namespace by their labels. If omitted
	// or empty, it selects all of them.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// Within is how long before their expiry the certificates of a Machine are
	// refreshed while the Gates are open, from 1m to 87600h (10 years). Defaults
	// to 720h (30 days).
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 3650 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="within must be a duration from 1m to 87600h (10 years), such as 720h"
	// +kubebuilder:default="720h"
	// +optional
	Within Duration `json:"within,omitzero"`

	// TTL is how long the new certificates are valid: a whole number and one of
	// the units y, mo, d, h, m, s of the provider Canonical Kubernetes, such as
	// 6mo. At least twice within. Defaults to 1y.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*(y|mo|d|h|m|s)$')",message="ttl must be a positive whole number and one of the units y, mo, d, h, m, s, such as 1y"
	// +kubebuilder:default="1y"
	// +optional
	TTL string `json:"ttl,omitempty"`

	// Timeout is how long the refresh of one Machine may take before it counts as
	// failed, from 1s to 24h. Defaults to 1h.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must be a duration from 1s to 24h, such as 1h"
	// +kubebuilder:default="1h"
	// +optional
	Timeout Duration `json:"timeout,omitzero"`
}

// maxTTLLength is the length of the longest spec.ttl.
const maxTTLLength = 8

// Lifetime returns spec.ttl as a Duration, at most the longest there
// is, and zero if it is malformed. A month has 30 days, a year 365.
func (in *MachineCertificateRefreshSpec) Lifetime() time.Duration {
	ttl := cmp.Or(in.TTL, DefaultMachineTTL)
	if len(ttl) > maxTTLLength {
		return 0
	}
	digits := strings.TrimRight(ttl, "abcdefghijklmnopqrstuvwxyz")
	unit := map[string]time.Duration{
		"y": 365 * 24 * time.Hour, "mo": 30 * 24 * time.Hour, "d": 24 * time.Hour,
		"h": time.Hour, "m": time.Minute, "s": time.Second,
	}[ttl[len(digits):]]
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || unit == 0 || strings.HasPrefix(digits, "0") {
		return 0
	}
	if time.Duration(n) > math.MaxInt64/unit {
		return math.MaxInt64
	}
	return time.Duration(n) * unit
}

// MachineCertificateRefreshStatus is the observed state of a
// MachineCertificateRefresh.
type MachineCertificateRefreshStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`

	// ObservedGeneration is the last generation that the controller reconciled,
	// -1 before the first.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Due is the number of Machines whose certificates are due for a refresh.
	// +optional
	Due int64 `json:"due"`

	// Refreshing is the name of the Machine whose certificates are being
	// refreshed. Empty if there is none.
	// +optional
	Refreshing string `json:"refreshing,omitempty"`

	// Stopped is the refresh that failed. Missing if none did. No further refresh
	// begins until a Gate opens, the spec changes, or
	// reconcile.fluxcd.io/requestedAt is set.
	// +optional
	Stopped *MachineFailure `json:"stopped,omitempty"`

	// Conditions: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineFailure is a refresh that failed.
type MachineFailure struct {
	// Machine is the name of the Machine whose certificates were not refreshed.
	Machine string `json:"machine"`

	// Message describes the failure.
	Message string `json:"message"`

	// RecordedAt is when the controller recorded the failure and stopped.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// MachineCertificateRefresh refreshes the certificates of Machines of Cluster
// API, one Machine at a time, while Gates are open.
// +kubebuilder:object:root=true
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:resource:shortName=gtmcr,categories=all;fluxcd;fluxcd-gates
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Due",type="integer",JSONPath=".status.due"
// +kubebuilder:printcolumn:name="Refreshing",type="string",JSONPath=".status.refreshing"
// +kubebuilder:printcolumn:name="Age",type="date",JSONPath=".metadata.creationTimestamp"
// +kubebuilder:printcolumn:name="Ready",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].status"
// +kubebuilder:printcolumn:name="Status",type="string",JSONPath=".status.conditions[?(@.type==\"Ready\")].message"
type MachineCertificateRefresh struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +required
	Spec MachineCertificateRefreshSpec `json:"spec"`
	// +kubebuilder:default={"observedGeneration":-1}
	// +optional
	Status MachineCertificateRefreshStatus `json:"status,omitzero"`
}

// MachineCertificateRefreshList is a list of MachineCertificateRefreshes.
// +kubebuilder:object:root=true
type MachineCertificateRefreshList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []MachineCertificateRefresh `json:"items"`
}

// GetConditions returns the conditions of the refresh.
func (in *MachineCertificateRefresh) GetConditions() []metav1.Condition {
	return in.Status.Conditions
}

// SetConditions replaces the conditions of the refresh.
func (in *MachineCertificateRefresh) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// Reasons of events on Machines, named as in the proposal of the provider
// Canonical Kubernetes for refreshing certificates.
const (
	// RefreshCertsInProgressReason means that a refresh was requested.
	RefreshCertsInProgressReason = "RefreshCertsInProgress"
	// RefreshCertsDoneReason means that the certificates have been refreshed.
	RefreshCertsDoneReason = "RefreshCertsDone"
	// RefreshCertsFailedReason means that the refresh failed. Also a reason of the
	// condition Ready of a MachineCertificateRefresh.
	RefreshCertsFailedReason = "RefreshCertsFailed"
)
