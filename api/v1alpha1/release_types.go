package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ReleasePolicy says how fast targets are released when a Gate opens.
type ReleasePolicy struct {
	// PerMinute is how many targets are released per minute, from 1 to 60000,
	// spread evenly. The namespaces take turns, and in each the Certificates that
	// expire soonest come first.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60000
	// +required
	PerMinute int32 `json:"perMinute"`
}

// ReleaseStatus says how far a paced release has come.
type ReleaseStatus struct {
	// Total is the number of targets to release since the Gate last opened.
	Total int64 `json:"total"`

	// Released is how many of them are released.
	Released int64 `json:"released"`

	// LastNamespace is the namespace that had the last turn. The next turn goes to
	// one after it.
	// +optional
	LastNamespace string `json:"lastNamespace,omitempty"`

	// NextAt is when the next target may be released. Missing if all are released
	// or the Gate has closed.
	// +optional
	NextAt *metav1.MicroTime `json:"nextAt,omitempty"`
}
