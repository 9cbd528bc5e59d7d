package v1alpha1

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of spec.machines.
const (
	DefaultMachineWithin  = 720 * time.Hour
	DefaultMachineTTL     = "1y"
	DefaultMachineTimeout = time.Hour
)

// MachinePolicy says how an open Gate refreshes the certificates of the
// Machines of Cluster API that it governs.
// +kubebuilder:validation:XValidation:rule="!self.ttl.matches('^[1-9][0-9]*(y|mo|d|h|m|s)$') || !self.within.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') || (self.ttl.endsWith('mo') ? int(self.ttl.substring(0, size(self.ttl) - 2)) * 2592000 : int(self.ttl.substring(0, size(self.ttl) - 1)) * (self.ttl.endsWith('y') ? 31536000 : self.ttl.endsWith('d') ? 86400 : self.ttl.endsWith('h') ? 3600 : self.ttl.endsWith('m') ? 60 : 1)) > duration(self.within).getSeconds()",message="ttl must be longer than within, or the certificates would be refreshed without end"
type MachinePolicy struct {
	// Within is how long before their expiry the certificates of a Machine are
	// refreshed while the Gate is open, from 1m to 87600h (10 years). Defaults to
	// 720h (30 days).
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('87600h')",message="within must be a duration from 1m to 87600h (10 years), such as 720h"
	// +kubebuilder:default="720h"
	// +optional
	Within metav1.Duration `json:"within,omitzero"`

	// TTL is how long the new certificates are valid: a whole number and one of
	// the units y, mo, d, h, m, s of the provider Canonical Kubernetes, such as
	// 6mo. Must be longer than within. Defaults to 1y.
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]*(y|mo|d|h|m|s)$')",message="ttl must be a positive whole number and one of the units y, mo, d, h, m, s, such as 1y"
	// +kubebuilder:default="1y"
	// +optional
	TTL string `json:"ttl,omitempty"`

	// Timeout is how long the refresh of one Machine may take before it counts as
	// failed, from 1s to 24h. Defaults to 1h.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="timeout must be a duration from 1s to 24h, such as 1h"
	// +kubebuilder:default="1h"
	// +optional
	Timeout metav1.Duration `json:"timeout,omitzero"`
}

// maxTTLLength is the length of the longest spec.machines.ttl.
const maxTTLLength = 8

// Lifetime returns spec.machines.ttl as a Duration, at most the longest there
// is, and zero if it is malformed. A month has 30 days, a year 365.
func (in *MachinePolicy) Lifetime() time.Duration {
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

// MachineStatus says how far the refresh of the certificates of Machines has
// come.
type MachineStatus struct {
	// Due is the number of Machines whose certificates are due for a refresh.
	Due int64 `json:"due"`

	// Refreshing is the Machine whose certificates are being refreshed, as
	// namespace/name.
	// +optional
	Refreshing string `json:"refreshing,omitempty"`

	// Stopped is a refresh that failed. No other begins until the Gate opens again
	// or its spec changes.
	// +optional
	Stopped *MachineFailure `json:"stopped,omitempty"`
}

// MachineFailure is a refresh that failed.
type MachineFailure struct {
	// Machine whose certificates were not refreshed, as namespace/name.
	Machine string `json:"machine"`

	// Message says what went wrong.
	Message string `json:"message"`

	// At is when the controller gave up on the refresh.
	At metav1.Time `json:"at"`
}

// Reasons of events on Machines, named as in the proposal of the provider
// Canonical Kubernetes for refreshing certificates.
const (
	// RefreshCertsInProgressReason means that a refresh was requested.
	RefreshCertsInProgressReason = "RefreshCertsInProgress"
	// RefreshCertsDoneReason means that the certificates have been refreshed.
	RefreshCertsDoneReason = "RefreshCertsDone"
	// RefreshCertsFailedReason means that the refresh failed. Also a reason in
	// status.failures.
	RefreshCertsFailedReason = "RefreshCertsFailed"
)
