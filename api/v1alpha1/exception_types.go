package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxExceptions is the maximum number of entries in status.exceptions of a
// Gate: all exceptions that can apply at the same time, and 10 others.
const MaxExceptions = MaxEffectiveExceptions + 10

// ExceptionRecord is the state of a GateException of a Gate. There is one
// record for each interval in which the exception applied.
type ExceptionRecord struct {
	// name is the name of the GateException.
	Name string `json:"name"`

	// validFrom is spec.validFrom of the exception.
	ValidFrom metav1.Time `json:"validFrom"`

	// validUntil is spec.validUntil of the exception.
	ValidUntil metav1.Time `json:"validUntil"`

	// reason is the reason of the condition Active of the exception: InForce,
	// TooManyExceptions, Pending, WaitingApproval, Overlapped, GateNotReady or
	// Expired. An exception with an invalid spec has the reason that it would have
	// if it were valid, such as InForce.
	Reason string `json:"reason"`

	// only lists the targets to which spec.targets of the exception limits it,
	// such as Kustomization/apps, in at most 256 bytes. Missing if it applies to
	// the Gate.
	// +optional
	Only string `json:"only,omitempty"`

	// appliedAt is the time when the exception began to apply. Missing if it has
	// never applied.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// expiredAt is the time when the exception ended. This is validUntil, or an
	// earlier time if the exception was interrupted or deleted, or if its
	// validUntil was moved to the past. Missing if it has not ended.
	// +optional
	ExpiredAt *metav1.Time `json:"expiredAt,omitempty"`
}
