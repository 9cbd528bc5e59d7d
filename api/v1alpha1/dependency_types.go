package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// MaxDependencies is the maximum number of entries in spec.dependsOn of a
// Gate.
const MaxDependencies = 16

// DependencyReference refers to a dependency of a Gate. The Gate stays closed
// while the dependency is not ready.
type DependencyReference struct {
	// apiVersion is the API version of the object, such as
	// kustomize.toolkit.fluxcd.io/v1. Only its group is used, and it is required
	// only if several groups have the kind.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z0-9]+$')",message="apiVersion must be a group and a version, such as kustomize.toolkit.fluxcd.io/v1"
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the object, such as Kustomization. It must be a kind
	// that Gates can hold.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$')",message="kind must be the name of a kind, such as Kustomization: it begins with a capital letter and has only letters and digits"
	// +required
	Kind string `json:"kind"`

	// name is the name of the object.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="name must be the name of an object, such as apps: lower case letters, digits, dashes and dots"
	// +required
	Name string `json:"name"`

	// namespace is the namespace of the object. Defaults to the namespace of the
	// Gate.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace, such as shop; omit it for the namespace of the Gate"
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// readyExpr is a CEL expression of type bool that determines whether the
	// object is ready. As in spec.dependsOn of a Kustomization, the variables are
	// dep, the object, and self, the Gate. If omitted, the object is ready if its
	// condition Ready is True for its current generation. While Flux reconciles
	// the same generation again, Ready is Unknown and the object counts as ready
	// if it was ready before. An object that is suspended, stalled or being
	// deleted is not ready.
	//
	// Example: dep.status.observedGeneration == dep.metadata.generation
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	ReadyExpr string `json:"readyExpr,omitempty"`
}

// DependencyStatus is the observed state of a dependency of a Gate.
type DependencyStatus struct {
	// apiVersion is the API version of the object, as in the spec.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is the kind of the object.
	Kind string `json:"kind"`

	// namespace is the namespace of the object.
	Namespace string `json:"namespace"`

	// name is the name of the object.
	Name string `json:"name"`

	// ready is true if the object is ready. The Gate stays closed while it is
	// false.
	Ready bool `json:"ready"`

	// message is the reason why the object is not ready, in at most 256 bytes.
	// Missing if it is ready.
	// +optional
	Message string `json:"message,omitempty"`

	// since is the time when ready last changed.
	Since metav1.Time `json:"since"`
}
