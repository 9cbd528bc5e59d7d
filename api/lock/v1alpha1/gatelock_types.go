package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GateLockKind is the kind of a GateLock.
	GateLockKind = "GateLock"

	// GateLockName is the name of the one GateLock of a namespace.
	GateLockName = "closed"

	// AllNamespacesLockName is the name of the GateLock of all namespaces, which
	// is in the namespace of the controller.
	AllNamespacesLockName = "all-namespaces"

	// MaxLockedLabels is how many labels spec.labels of a GateLock has.
	MaxLockedLabels = 8192

	// MaxLabelLocks is how many entries each of them has.
	MaxLabelLocks = 512

	// MaxOverlayLocks is how many entries spec.overlays of a GateLock has in
	// total.
	MaxOverlayLocks = 64
)

// GateLockSpec records the locked objects of a namespace for the admission
// policies of config/lock. A Gate is locked while it is closed and its mode is
// Enforce. The policies look objects up in maps, so the cost of a request does
// not depend on the number of Gates. The maps are atomic: no other client owns
// a part, and the managed fields of ten thousand entries would not fit into an
// object.
type GateLockSpec struct {
	// Gates has, for each Gate that objects of the namespace can refer to, as
	// namespace/name, whether it is locked. A Gate that is missing here counts as
	// locked.
	// +mapType=atomic
	// +optional
	Gates map[string]bool `json:"gates,omitempty"`

	// Targets has the locked Gates of objects, by "Kind/name", or by "Kind/*" for
	// all objects of a kind. Sorted.
	// +mapType=atomic
	// +optional
	Targets map[string][]string `json:"targets,omitempty"`

	// Labels has the locked Gates of objects, by "Kind/key=value". This is the
	// first label, in alphabetical order, that the objects must have. At most
	// 8192, so that all of them fit into one object.
	// +kubebuilder:validation:MaxProperties=8192
	// +mapType=atomic
	// +optional
	Labels map[string]LabelLocks `json:"labels,omitempty"`

	// Selectors has the locked Gates of the objects of a kind that more than equal
	// labels select. All entries of the kind are compared.
	// +mapType=atomic
	// +optional
	Selectors map[string][]SelectorLock `json:"selectors,omitempty"`

	// Overlays has, by kind, the objects whose lock differs from gates, because of
	// overlays in the status of a Gate. At most 64 in total. If there are more,
	// entries that unlock objects are left out.
	// +mapType=atomic
	// +optional
	Overlays map[string][]OverlayLock `json:"overlays,omitempty"`
}

// OverlayLock determines whether one Gate locks some of its targets. If several
// entries match an object, locked wins.
type OverlayLock struct {
	// Gate as namespace/name.
	Gate string `json:"gate"`

	// Locked is whether the Gate locks these targets.
	Locked bool `json:"locked"`

	// Namespace of the objects. Only in the GateLock of all namespaces, and any
	// namespace if omitted.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// Name that the objects must have. Any name if omitted.
	// +optional
	Name string `json:"name,omitempty"`

	// Selector that the labels of the objects must match.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// NamespaceSelector that the labels of their namespace must match.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// +kubebuilder:validation:MaxItems=512
// +listType=atomic

// LabelLocks are compared one by one with each object that has their first
// label. At most 512, because the API server refuses a write on which a policy
// spends too much. The controller leaves out the last ones.
type LabelLocks []LabelLock

// LabelLock has the locked Gates of the objects that have some labels.
type LabelLock struct {
	// MatchLabels are the labels that the objects must have, all of them. At most
	// 32, as in the spec of a Gate.
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]string `json:"matchLabels"`

	// Gates as namespace/name, sorted.
	// +listType=atomic
	Gates []string `json:"gates"`
}

// SelectorLock has the locked Gates of the objects that selectors match.
type SelectorLock struct {
	// Name that the objects must have. Any name if omitted.
	// +optional
	Name string `json:"name,omitempty"`

	// Selector that the labels of the objects must match.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// NamespaceSelector that the labels of their namespace must match. Only in the
	// GateLock of all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// Gates as namespace/name, sorted.
	// +listType=atomic
	Gates []string `json:"gates"`
}

// GateLock is the index that lets the API server keep held objects from being
// resumed. It is internal: only the controller writes it.
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name in ['closed', 'all-namespaces']",message="the one GateLock of a namespace is named closed, and that of all namespaces all-namespaces"
type GateLock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// +optional
	Spec GateLockSpec `json:"spec,omitzero"`
}

// GateLockList is a list of GateLocks.
// +kubebuilder:object:root=true
type GateLockList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GateLock `json:"items"`
}
