package v1alpha1

import (
	"time"
)

// DefaultSafetyMargin is the default of spec.certificates.safetyMargin of a
// Gate.
const DefaultSafetyMargin = 24 * time.Hour

// CertificatePolicy specifies how a closed Gate handles the certificates of
// cert-manager Certificates and of Machines that are about to expire.
type CertificatePolicy struct {
	// safetyMargin is how long before its expiry a certificate is renewed even if
	// the Gate is closed, from 1m to 8784h (366 days). For a cert-manager
	// Certificate, the controller uses at most a sixth of its lifetime. Defaults
	// to 24h.
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]{1,4}[dw]$') ? int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) >= 1 && int(self.substring(0, size(self) - 1)) * (self.endsWith('w') ? 7 : 1) <= 366 : self.matches('^([0-9]{1,9}([.][0-9]{1,9})?(ms|s|m|h))+$') && duration(self) >= duration('1m') && duration(self) <= duration('8784h')",message="safetyMargin must be a duration from 1m to 8784h (366 days), such as 24h"
	// +optional
	SafetyMargin *Duration `json:"safetyMargin,omitempty"`

	// strict disables renewals while the Gate is closed, even if certificates
	// expire. safetyMargin then has no effect. Defaults to false.
	// +optional
	Strict bool `json:"strict,omitempty"`
}

// Conditions of a Certificate that a Gate governs. The controller removes them
// when no Gate governs the Certificate.
const (
	// RenewalDeferredCondition is True while a closed Gate defers the renewal.
	RenewalDeferredCondition = "RenewalDeferred"
	// RenewalDisabledCondition is True while a closed Gate with
	// spec.certificates.strict disables the renewal and no opening is scheduled.
	// The certificate expires unless a user opens the Gate or renews the
	// certificate.
	RenewalDisabledCondition = "RenewalDisabled"
	// RenewalWindowBypassedCondition is True while a certificate is renewed
	// because it expires soon, although a Gate is closed.
	RenewalWindowBypassedCondition = "RenewalWindowBypassed"
	// RenewalConfigInvalidCondition is True while the renewal cannot be held as
	// the Gate specifies, because of the Gate, the Certificate or the version of
	// cert-manager.
	RenewalConfigInvalidCondition = "RenewalConfigInvalid"
	// ActivatedCondition is True while the issued certificate is in the Secret
	// that the annotation gating.toolkit.fluxcd.io/activateInto names.
	ActivatedCondition = "Activated"
)

// Reasons of the renewal conditions of a Certificate, in addition to
// InvalidSpec.
const (
	// OutsideAllowedWindowReason is the reason of RenewalDeferred=True.
	OutsideAllowedWindowReason = "OutsideAllowedWindow"
	// UserConfiguredReason is the reason of RenewalDisabled=True.
	UserConfiguredReason = "UserConfigured"
	// ExpiryImminentReason is the reason of RenewalWindowBypassed=True.
	ExpiryImminentReason = "ExpiryImminent"
	// RenewalWithinMarginReason is the reason of RenewalDeferred=False if the
	// renewal is due only after the safety margin begins, so that it need not be
	// held.
	RenewalWithinMarginReason = "RenewalWithinMargin"
	// WindowIgnoredReason is the reason of RenewalConfigInvalid=True if
	// cert-manager schedules the renewal for a different time than the deadline
	// that the controller set. The controller then disables the renewal until that
	// deadline.
	WindowIgnoredReason = "WindowIgnored"
	// UnsupportedVersionReason is the reason of RenewalConfigInvalid=True if the
	// installed version of cert-manager cannot hold the renewal as specified.
	UnsupportedVersionReason = "UnsupportedVersion"
)

// Reasons of the condition Activated, in addition to GateClosed, and of events
// on Certificates.
const (
	// ActivatedReason means that the issued certificate was copied to the Secret.
	ActivatedReason = "Activated"
	// ActivationFailedReason means that the issued certificate cannot be copied to
	// the Secret. The message has the cause. Also a reason in
	// status.targets.failures.
	ActivationFailedReason = "ActivationFailed"
	// NotIssuedReason means that no certificate has been issued yet.
	NotIssuedReason = "NotIssued"
	// NotYetValidReason means that the issued certificate is not valid yet.
	NotYetValidReason = "NotYetValid"
	// RolledBackReason means that another client has changed the Secret since the
	// issued certificate was copied to it. On a GatedSource, it means that the pin
	// has moved back to a revision that was promoted before.
	RolledBackReason = "RolledBack"
)
