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

// MachineCertificateRefreshSpec specifies which Cluster API Machines get new
// certificates, and when.
// +kubebuilder:validation:XValidation:rule="!self.ttl.matches('^[1-9][0-9]*(y|mo|d|h|m|s)$') || !self.within.matches('^(([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+|[0-9]{1,4}[dw])$') || (self.ttl.endsWith('mo') ? int(self.ttl.substring(0, size(self.ttl) - 2)) * 2592000 : int(self.ttl.substring(0, size(self.ttl) - 1)) * (self.ttl.endsWith('y') ? 31536000 : self.ttl.endsWith('d') ? 86400 : self.ttl.endsWith('h') ? 3600 : self.ttl.endsWith('m') ? 60 : 1)) >= 2 * (self.within.matches('[dw]$') ? int(self.within.substring(0, size(self.within) - 1)) * (self.within.endsWith('w') ? 7 : 1) * 86400 : duration(self.within).getSeconds())",message="ttl must be at least twice within: write a longer ttl, such as 60d for within: 720h, or a shorter within"
type MachineCertificateRefreshSpec struct {
	// gateRefs lists the Gates, in the same namespace. From 1 to 10. A refresh
	// begins only while all of them are open. When certificates are about to
	// expire, spec.certificates of the closed Gates applies. While a Gate does not
	// exist, is suspended, has an invalid spec or has mode Audit, no refresh
	// begins.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +listType=map
	// +listMapKey=name
	// +required
	GateRefs []GateReference `json:"gateRefs"`

	// selector selects Machines in the same namespace by label. If omitted or
	// empty, it selects all Machines.
	// +optional
	Selector *LabelSelector `json:"selector,omitempty"`

	// within is how long before their expiry the certificates of a Machine are
	// refreshed while the Gates are open, from 1m to 87600h (10 years). Defaults
	// to 720h (30 days).
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 3650 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="within must be a duration from 1m to 87600h (10 years), such as 720h"
	// +kubebuilder:default="720h"
	// +optional
	Within Duration `json:"within,omitzero"`

	// ttl is the lifetime of the new certificates. A positive whole number with
	// one of the units of the provider Canonical Kubernetes, y, mo, d, h, m and s,
	// such as 6mo. At least twice within. Defaults to 1y.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*(y|mo|d|h|m|s)$')",message="ttl must be a positive whole number and one of the units y, mo, d, h, m, s, such as 1y"
	// +kubebuilder:default="1y"
	// +optional
	TTL string `json:"ttl,omitempty"`

	// timeout is the maximum duration of the refresh of one Machine. After that,
	// it has failed. From 1s to 24h. Defaults to 1h.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 1 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must be a duration from 1s to 24h, such as 1h"
	// +kubebuilder:default="1h"
	// +optional
	Timeout Duration `json:"timeout,omitzero"`
}

// maxTTLLength is the maximum length of spec.ttl.
const maxTTLLength = 8

// Lifetime returns spec.ttl as a Duration, zero if it is malformed. A month
// has 30 days, and a year has 365. A ttl that is too long for a Duration is
// returned as the longest Duration.
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

	// observedGeneration is the last generation that the controller reconciled, or
	// -1 if it has not reconciled the object yet.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// due is the number of Machines whose certificates are due for a refresh.
	// +optional
	Due int64 `json:"due"`

	// refreshing is the name of the Machine whose certificates are being
	// refreshed. Empty if there is none.
	// +optional
	Refreshing string `json:"refreshing,omitempty"`

	// stopped is the failed refresh that prevents further refreshes. Missing if
	// no refresh has failed. It is removed when the Gates open again, when the
	// spec is changed, or when the annotation reconcile.fluxcd.io/requestedAt is
	// set.
	// +optional
	Stopped *MachineFailure `json:"stopped,omitempty"`

	// conditions of the MachineCertificateRefresh: Ready, Stalled.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// MachineFailure describes a failed refresh.
type MachineFailure struct {
	// machine is the name of the Machine.
	Machine string `json:"machine"`

	// message describes the failure.
	Message string `json:"message"`

	// recordedAt is the time when the controller recorded the failure.
	RecordedAt metav1.Time `json:"recordedAt"`
}

// MachineCertificateRefresh refreshes the certificates of Cluster API Machines
// before they expire, one Machine at a time, while its Gates are open.
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

// GetConditions returns the conditions of the MachineCertificateRefresh.
func (in *MachineCertificateRefresh) GetConditions() []metav1.Condition {
	return in.Status.Conditions
}

// SetConditions replaces the conditions of the MachineCertificateRefresh.
func (in *MachineCertificateRefresh) SetConditions(conditions []metav1.Condition) {
	in.Status.Conditions = conditions
}

// Reasons of events on Machines. The names are those in the proposal for
// certificate refreshes of the provider Canonical Kubernetes.
const (
	// RefreshCertsInProgressReason means that the controller has requested a
	// refresh.
	RefreshCertsInProgressReason = "RefreshCertsInProgress"
	// RefreshCertsDoneReason means that the certificates have been refreshed.
	RefreshCertsDoneReason = "RefreshCertsDone"
	// RefreshCertsFailedReason means that the refresh failed. Also a reason of the
	// condition Ready of a MachineCertificateRefresh.
	RefreshCertsFailedReason = "RefreshCertsFailed"
)
