package cli

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/verdict"
)

// controllerNamespace is the namespace of the controller as config/default has it.
const controllerNamespace = "gating-system"

// reach returns what decides which objects Gates govern besides the objects. Each namespace is read once, and only if a Gate selects
// namespaces by their labels.
func (c *cluster) reach(ctx context.Context) verdict.Scope {
	read := map[string]map[string]string{}
	return verdict.Scope{Own: controllerNamespace, Labels: func(name string) map[string]string {
		if _, known := read[name]; !known {
			namespace := &metav1.PartialObjectMetadata{}
			namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
			err := c.Get(ctx, client.ObjectKey{Name: name}, namespace)
			read[name] = namespace.Labels
			if client.IgnoreNotFound(err) != nil {
				c.warn("%s; a gate that selects namespaces by labels is not shown", asked{"get", "namespaces", name, name, "view"}.explain(err))
			}
		}
		return read[name]
	}}
}
