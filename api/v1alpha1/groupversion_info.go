// Package v1alpha1 contains the API types of the group
// gating.toolkit.fluxcd.io in version v1alpha1.
// +kubebuilder:object:generate=true
// +groupName=gating.toolkit.fluxcd.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/api"
)

// GroupVersion is the group and version of the types in this package.
var GroupVersion = schema.GroupVersion{Group: api.Group, Version: "v1alpha1"}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Gate{}, &GateList{}, &GateException{}, &GateExceptionList{},
		&GateReceiver{}, &GateReceiverList{}, &CalendarFeed{}, &CalendarFeedList{},
		&GatedSource{}, &GatedSourceList{}, &MachineCertificateRefresh{}, &MachineCertificateRefreshList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
