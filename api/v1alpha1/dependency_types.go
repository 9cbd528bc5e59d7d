package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxDependencies is the number of dependencies that a Gate can have.
const MaxDependencies = 16

// DependencyReference names a dependency of a Gate: the Gate is held closed
// while the object is not ready.
type DependencyReference struct {
	// APIVersion of the object, such as kustomize.toolkit.fluxcd.io/v1. Only its
	// group counts, and it is needed only if the kind alone is ambiguous.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]+$')",message="apiVersion must be a group and a version, such as kustomize.toolkit.fluxcd.io/v1"
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the object, such as Kustomization: one of those that a Gate can
	// hold.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, such as Kustomization: it begins with a capital letter and has only letters and digits"
	// +required
	Kind string `json:"kind"`

	// Name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of an object, such as apps: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`

	// Namespace of the object. Defaults to the namespace of the Gate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, such as shop; omit it for the namespace of the Gate"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// ReadyExpr is a CEL expression of type bool that says whether the object is
	// ready. As in spec.dependsOn of a Kustomization, it reads the object as dep
	// and the Gate as self. If omitted, the object is ready while its condition
	// Ready is True for its current generation. An object that is suspended,
	// stalled or being deleted is not ready. While Ready is Unknown because Flux
	// reconciles the same generation again, the object keeps its last readiness.
	//
	// Example: dep.status.observedGeneration == dep.metadata.generation
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// DependencyStatus is the observed state of a dependency of a Gate.
type DependencyStatus struct {
	// APIVersion of the object, as in the spec.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind of the object.
	Kind string `json:"kind"`

	// Namespace of the object.
	Namespace string `json:"namespace"`

	// Name of the object.
	Name string `json:"name"`

	// Ready is true if the object is ready. While it is false, the Gate stays
	// closed.
	Ready bool `json:"ready"`

	// Message states why the object is not ready. Missing if it is ready.
	// +optional
	Message string `json:"message,omitempty"`

	// Since is when ready last changed.
	Since metav1.Time `json:"since"`
}
