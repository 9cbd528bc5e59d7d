package kube

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Controllers returns the Deployments of the controller.
func Controllers(ctx context.Context, c *Cluster) (found []check.Controller, err error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	err = c.List(ctx, list, &client.ListOptions{Raw: &metav1.ListOptions{LabelSelector: check.ControllerLabel}})
	for i := range list.Items {
		found = append(found, check.ControllerOf(&list.Items[i]))
	}
	return found, err
}

// ObjectNames returns the names of the objects of a kind in a namespace.
func ObjectNames(ctx context.Context, c *Cluster, namespace string, kind schema.GroupVersionKind) (names []string, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	err = c.List(ctx, list, client.InNamespace(namespace))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, err
}

// manyNamespaces is the number of namespaces above which one list of all namespaces is cheaper than one list per namespace.
const manyNamespaces = 5

// Exceptions returns the GateExceptions of namespaces.
func (c *Cluster) Exceptions(ctx context.Context, namespaces []string) (exceptions []*v1alpha1.GateException, err error) {
	if len(namespaces) > manyNamespaces {
		namespaces = []string{""}
	}
	for _, namespace := range namespaces {
		opts := &client.ListOptions{Namespace: namespace, Limit: 500}
		for {
			list := &v1alpha1.GateExceptionList{}
			if err := c.List(ctx, list, opts); err != nil {
				return nil, NewCall("list", "gateexceptions", namespace, "", "gate-viewer").Explain(err)
			}
			for i := range list.Items {
				exceptions = append(exceptions, &list.Items[i])
			}
			if opts.Continue = list.Continue; opts.Continue == "" {
				break
			}
		}
	}
	return exceptions, nil
}

// SourceApproverRole is the ClusterRole with the permissions to approve a revision.
const SourceApproverRole = "gated-source-approver"

// GatedSource returns the GatedSource with the given key.
func (c *Cluster) GatedSource(ctx context.Context, key client.ObjectKey) (*v1alpha1.GatedSource, error) {
	g := &v1alpha1.GatedSource{}
	err := c.Get(ctx, key, g)
	if apierrors.IsNotFound(err) && !IsUnknownResource(err) {
		return nil, notFound(ctx, c, v1alpha1.GroupVersion.WithKind(v1alpha1.GatedSourceKind), key, "gatedsource", "kubectl get gatedsources -A")
	}
	return g, NewCall("get", "gatedsources", key.Namespace, key.Name, SourceApproverRole).Explain(err)
}

// Exception returns the GateException with the given key. An error about missing permissions names ApproverRole.
func (c *Cluster) Exception(ctx context.Context, key client.ObjectKey) (*v1alpha1.GateException, error) {
	e := &v1alpha1.GateException{}
	err := c.Get(ctx, key, e)
	if apierrors.IsNotFound(err) && !IsUnknownResource(err) {
		return nil, notFound(ctx, c, v1alpha1.GroupVersion.WithKind(v1alpha1.GateExceptionKind), key, "gateexception", "kubectl get gateexceptions -A")
	}
	return e, NewCall("get", "gateexceptions", key.Namespace, key.Name, ApproverRole).Explain(err)
}

// ExceptionsFor returns the GateExceptions of a Gate.
func ExceptionsFor(ctx context.Context, c *Cluster, g *v1alpha1.Gate) ([]*v1alpha1.GateException, error) {
	all, err := c.Exceptions(ctx, []string{g.Namespace})
	return slices.DeleteFunc(all, func(e *v1alpha1.GateException) bool { return !gate.IsOf(g, e) }), err
}

// controllerNamespace is the namespace of the controller in config/default.
const controllerNamespace = "gating-system"

// VerdictScope returns the labels of namespaces and the namespace of the controller, which determine which objects Gates govern. Each
// namespace is read at most once, and only if a Gate selects namespaces by labels.
func (c *Cluster) VerdictScope(ctx context.Context) verdict.Scope {
	read := map[string]map[string]string{}
	return verdict.Scope{Own: controllerNamespace, Labels: func(name string) map[string]string {
		if _, known := read[name]; !known {
			namespace := &metav1.PartialObjectMetadata{}
			namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
			err := c.Get(ctx, client.ObjectKey{Name: name}, namespace)
			read[name] = namespace.Labels
			if client.IgnoreNotFound(err) != nil {
				c.Warn("%s; a gate that selects namespaces by labels is not shown", NewCall("get", "namespaces", name, name, "view").Explain(err))
			}
		}
		return read[name]
	}}
}

// FullName returns the namespace and the name of a Gate.
func FullName(g *v1alpha1.Gate) string { return g.Namespace + "/" + g.Name }

// CurrentUser returns the user name according to the API server, empty if the API server does not return it. With config/policies, the
// API server itself writes the name.
func CurrentUser(ctx context.Context, c *Cluster) string {
	review := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
	if err := c.Create(ctx, review); err != nil {
		return ""
	}
	name, _, _ := unstructured.NestedString(review.Object, "status", "userInfo", "username")
	return name
}

// ApproverRole is the ClusterRole with the permissions to approve an exception.
const ApproverRole = "gate-exception-approver"
