package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxExceptions is the number of entries that status.exceptions of a Gate
// keeps: all MaxEffectiveExceptions that can apply at once, and 10 others.
const MaxExceptions = MaxEffectiveExceptions + 10

// ExceptionRecord is the state of a GateException of a Gate. An exception that
// was interrupted has a record for each time in which it applied.
type ExceptionRecord struct {
	// Name of the GateException.
	Name string `json:"name"`

	// ValidFrom is when the exception begins to apply.
	ValidFrom metav1.Time `json:"validFrom"`

	// ValidUntil is when the exception stops applying.
	ValidUntil metav1.Time `json:"validUntil"`

	// Reason of the condition Active of the exception: InForce, also if it is
	// invalid, TooManyExceptions, Pending, WaitingApproval, Overlapped,
	// GateNotReady or Expired.
	Reason string `json:"reason"`

	// AppliedAt is when the exception first determined the state of the Gate.
	// Missing if it never did.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// ExpiredAt is when the exception ended: at validUntil, or earlier if it was
	// interrupted, deleted or moved into the past.
	// +optional
	ExpiredAt *metav1.Time `json:"expiredAt,omitempty"`
}
