package kube

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Cluster is a cluster as a command sees it.
type Cluster struct {
	client.WithWatch
	// Namespace is the one that the user means.
	Namespace  string
	RESTConfig *rest.Config
	// Role is the one that the command needs, for errors.
	Role string
	// Warn says on standard error what is left out.
	Warn func(format string, args ...any)
}

func scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	return scheme
}

// staticMapper maps our kinds, and those of Kubernetes that commands ask for, without asking the API server what it has.
func staticMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{v1alpha1.GateKind, v1alpha1.GateExceptionKind, v1alpha1.GatedSourceKind, v1alpha1.GateReceiverKind, v1alpha1.CalendarFeedKind} {
		mapper.Add(v1alpha1.GroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "authentication.k8s.io", Version: "v1", Kind: "SelfSubjectReview"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}, meta.RESTScopeRoot)
	return mapper
}
