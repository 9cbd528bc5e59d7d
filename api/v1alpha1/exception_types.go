package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxExceptions is the number of entries that status.exceptions of a Gate keeps.
const MaxExceptions = 10

// ExceptionPolicy says which GateExceptions of a Gate count.
type ExceptionPolicy struct {
	// Approvals is how many people other than those who wrote an exception must have
	// approved it. Omitted or 0 means none. Needs config/policies: without it no
	// exception of this Gate counts.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	Approvals int32 `json:"approvals,omitempty"`
}

// ExceptionRecord is what a Gate knows of one of its GateExceptions, or of a stretch of
// time in which that applied: one that was interrupted has a record for each.
type ExceptionRecord struct {
	// Name of the GateException.
	Name string `json:"name"`

	// Type of the exception.
	Type ExceptionType `json:"type"`

	// ValidFrom is the first instant at which it applies.
	ValidFrom metav1.Time `json:"validFrom"`

	// ValidUntil is the first instant at which it applies no more.
	ValidUntil metav1.Time `json:"validUntil"`

	// State of the exception: Pending, Active or Expired.
	State ExceptionState `json:"state"`

	// AppliedAt is when the Gate first decided with it, missing if it never did.
	// +optional
	AppliedAt *metav1.Time `json:"appliedAt,omitempty"`

	// ExpiredAt is when it ended: validUntil, or when it was interrupted, deleted or
	// moved into the past before that.
	// +optional
	ExpiredAt *metav1.Time `json:"expiredAt,omitempty"`
}
