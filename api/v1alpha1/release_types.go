package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleasePolicy says how fast targets are released when a Gate opens.
type ReleasePolicy struct {
	// PerMinute is how many targets are released in a minute, spread evenly: in turn
	// from each namespace, of each the Certificates that expire soonest first.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	// +required
	PerMinute int32 `json:"perMinute"`
}

// ReleaseStatus is how far a paced release is.
type ReleaseStatus struct {
	// Total number of targets to release since the Gate opened last.
	Total int64 `json:"total"`

	// Released is how many of them are released.
	Released int64 `json:"released"`

	// LastNamespace is the one that had the last turn. The next release goes on behind
	// it.
	// +optional
	LastNamespace string `json:"lastNamespace,omitempty"`

	// NextAt is when the next target may be released, missing if all are released or
	// the Gate has closed.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`
}
