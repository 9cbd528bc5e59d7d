package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// GateLockKind is the kind of a GateLock.
	GateLockKind = "GateLock"

	// GateLockName is the name of the GateLock for the objects of its namespace.
	GateLockName = "closed"

	// AllNamespacesLockName is the name of the GateLock for the objects of all
	// namespaces. It is in the namespace of the controller.
	AllNamespacesLockName = "all-namespaces"

	// MaxLockedLabels is the maximum number of keys in spec.labels of a GateLock.
	MaxLockedLabels = 8192

	// MaxLabelLocks is the maximum number of entries for each key in spec.labels.
	MaxLabelLocks = 512

	// MaxOverlayLocks is the maximum number of entries in spec.overlays of a
	// GateLock, for all kinds together.
	MaxOverlayLocks = 64
)

// GateLockSpec lists the locked objects, for the admission policies in
// config/lock. A Gate locks its targets while it is closed and its mode is
// Enforce. The policies look up objects in maps, so that the cost of a
// request does not depend on the number of Gates. The maps are atomic,
// because only the controller writes them, and because the managed fields of
// ten thousand entries would not fit into an object.
type GateLockSpec struct {
	// gates maps the Gates that objects can refer to by annotation, as
	// namespace/name, to whether they lock their targets. A Gate without an entry
	// locks them, too.
	// +mapType=atomic
	// +optional
	Gates map[string]bool `json:"gates,omitempty"`

	// initial contains the Gates with initialReconciliation: Allow, as
	// namespace/name. They do not lock an object that is younger than 1h and has
	// never been reconciled successfully.
	// +mapType=atomic
	// +optional
	Initial map[string]bool `json:"initial,omitempty"`

	// targets lists the Gates that lock an object, as namespace/name, sorted. The
	// key is Kind/name for one object, or Kind/* for all objects of a kind.
	// +mapType=atomic
	// +optional
	Targets map[string][]string `json:"targets,omitempty"`

	// labels lists the Gates that lock the objects with certain labels. The key
	// is Kind/key=value with the first of these labels, in alphabetical order of
	// their keys. At most 8192 keys, so that they fit into one object.
	// +kubebuilder:validation:MaxProperties=8192
	// +mapType=atomic
	// +optional
	Labels map[string]LabelLocks `json:"labels,omitempty"`

	// selectors lists the Gates that lock the objects that a selector matches,
	// for targets with matchExpressions or in several namespaces. The key is the
	// kind. The policies compare an object with all entries for its kind.
	// +mapType=atomic
	// +optional
	Selectors map[string][]SelectorLock `json:"selectors,omitempty"`

	// overlays lists, by kind, the objects that a Gate locks or does not lock
	// because of an overlay in its status. These entries take precedence over
	// gates. At most 64 in total. If there are more, entries that unlock objects
	// are dropped.
	// +mapType=atomic
	// +optional
	Overlays map[string][]OverlayLock `json:"overlays,omitempty"`
}

// OverlayLock determines whether one Gate locks some of its targets. If
// several entries match an object, locked takes precedence.
type OverlayLock struct {
	// gate is the Gate as namespace/name.
	Gate string `json:"gate"`

	// locked is true if the Gate locks these targets.
	Locked bool `json:"locked"`

	// requested is true if the overlay is from a request. It then takes
	// precedence over the overlays of the same Gate that are from GateExceptions.
	// +optional
	Requested bool `json:"requested,omitempty"`

	// namespace is the namespace of the objects. If omitted, the objects can have
	// any namespace. Only in the GateLock of all namespaces.
	// +optional
	Namespace string `json:"namespace,omitempty"`

	// name is the name that the objects must have. If omitted, the objects can
	// have any name.
	// +optional
	Name string `json:"name,omitempty"`

	// selector selects the objects by label. If omitted, it selects all objects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector selects the namespaces of the objects by label. If
	// omitted, it selects all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
}

// +kubebuilder:validation:MaxItems=512
// +listType=atomic

// LabelLocks lists the entries for one label. The policies compare an object
// that has this label with all of them. At most 512, because the API server
// refuses a write if evaluating a policy is too expensive. The controller
// drops the entries that exceed the limit.
type LabelLocks []LabelLock

// LabelLock lists the Gates that lock the objects with certain labels.
type LabelLock struct {
	// matchLabels are labels that the objects must have. At most 32, as in the
	// spec of a Gate.
	// +kubebuilder:validation:MaxProperties=32
	MatchLabels map[string]string `json:"matchLabels"`

	// gates lists the Gates as namespace/name, sorted.
	// +listType=atomic
	Gates []string `json:"gates"`
}

// SelectorLock lists the Gates that lock the objects that a name and
// selectors match.
type SelectorLock struct {
	// name is the name that the objects must have. If omitted, the objects can
	// have any name.
	// +optional
	Name string `json:"name,omitempty"`

	// selector selects objects by label. If omitted, it selects all objects.
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// namespaceSelector selects the namespaces of the objects by label. If
	// omitted, it selects all namespaces. Only in the GateLock for all namespaces.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`

	// gates lists the Gates as namespace/name, sorted.
	// +listType=atomic
	Gates []string `json:"gates"`
}

// GateLock is an index of the objects that closed Gates lock. The admission
// policies in config/lock use it to keep these objects suspended. It is
// internal: only the controller writes it.
// +kubebuilder:metadata:annotations="kustomize.toolkit.fluxcd.io/substitute=disabled"
// +kubebuilder:object:root=true
// +kubebuilder:validation:XValidation:rule="self.metadata.name in ['closed', 'all-namespaces']",message="metadata.name must be closed, or all-namespaces for the GateLock of all namespaces"
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
