package v1alpha1

import (
	"time"
)

// DefaultSafetyMargin applies if a Gate has no spec.certificates.safetyMargin.
const DefaultSafetyMargin = 24 * time.Hour

// CertificatePolicy determines how a closed Gate treats Certificates of
// cert-manager and certificates of Machines that are about to expire.
type CertificatePolicy struct {
	// SafetyMargin is how long before its expiry a certificate is renewed even
	// though the Gate is closed, from 1m to 8784h (366 days). For a Certificate of
	// cert-manager it is at most a sixth of its lifetime. Defaults to 24h.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="safetyMargin must be a duration from 1m to 8784h (366 days), such as 24h"
	// +optional
	SafetyMargin *Duration `json:"safetyMargin,omitempty"`

	// Strict keeps certificates from being renewed while the Gate is closed, even
	// if they expire. Defaults to false.
	// +optional
	Strict bool `json:"strict,omitempty"`
}

// Conditions of a Certificate that a Gate governs. All are removed once no
// Gate governs it.
const (
	// RenewalDeferredCondition is True while a closed Gate defers the renewal.
	RenewalDeferredCondition = "RenewalDeferred"
	// RenewalDisabledCondition is True while a strict Gate is closed and no
	// opening is scheduled: the certificate expires unless a user acts.
	RenewalDisabledCondition = "RenewalDisabled"
	// RenewalWindowBypassedCondition is True while a certificate is being renewed
	// although a Gate is closed.
	RenewalWindowBypassedCondition = "RenewalWindowBypassed"
	// RenewalConfigInvalidCondition is True while the configuration of the Gate or
	// of the Certificate prevents the renewal from being held as specified.
	RenewalConfigInvalidCondition = "RenewalConfigInvalid"
	// ActivatedCondition is True while the issued certificate is in the Secret
	// that the annotation gating.toolkit.fluxcd.io/activateInto names.
	ActivatedCondition = "Activated"
)

// Reasons of the conditions of a Certificate.
const (
	// OutsideAllowedWindowReason is the reason of RenewalDeferred.
	OutsideAllowedWindowReason = "OutsideAllowedWindow"
	// UserConfiguredReason is the reason of RenewalDisabled.
	UserConfiguredReason = "UserConfigured"
	// ExpiryImminentReason is the reason of RenewalWindowBypassed.
	ExpiryImminentReason = "ExpiryImminent"
	// RenewalWithinMarginReason is the reason of RenewalDeferred=False if the
	// certificate is renewed only after the safety margin has begun.
	RenewalWithinMarginReason = "RenewalWithinMargin"
	// WindowIgnoredReason is the reason of RenewalConfigInvalid if cert-manager
	// plans the renewal for another time than the deadline that the controller
	// set. The controller has disabled the renewal instead.
	WindowIgnoredReason = "WindowIgnored"
	// UnsupportedVersionReason is the reason of RenewalConfigInvalid if this
	// version of cert-manager cannot hold the renewal as specified.
	UnsupportedVersionReason = "UnsupportedVersion"
)

// Reasons of the condition Activated, besides GateClosed, and of events on
// Certificates.
const (
	// ActivatedReason means that the issued certificate was promoted.
	ActivatedReason = "Activated"
	// ActivationFailedReason means that the issued certificate cannot be promoted.
	// The message has the cause. Also a reason in status.targets.failures.
	ActivationFailedReason = "ActivationFailed"
	// NotIssuedReason means that there is no certificate to promote yet.
	NotIssuedReason = "NotIssued"
	// NotYetValidReason means that the issued certificate is not valid yet.
	NotYetValidReason = "NotYetValid"
	// RolledBackReason means that another client has changed the Secret since the issued
	// certificate was promoted into it.
	RolledBackReason = "RolledBack"
)
