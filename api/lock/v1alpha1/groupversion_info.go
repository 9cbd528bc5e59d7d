// Package v1alpha1 contains the internal API of the lock. Only the controller
// and the admission policies in config/lock use it. It may change in any
// release.
// +kubebuilder:object:generate=true
// +groupName=internal.gating.toolkit.fluxcd.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: api.InternalGroup, Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &GateLock{}, &GateLockList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
