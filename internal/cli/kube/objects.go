package kube

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Objects reads objects of the kinds that Gates can hold. It omits resources that the user is not permitted to list, and records them.
type Objects struct {
	Cluster *Cluster
	Mapper  meta.RESTMapper
	// Refused lists the resources that the user is not permitted to list, by namespace.
	Refused map[string][]string
	// ListsRead counts the lists that were read, except lists of our own kinds.
	ListsRead int
	// Deployed are the controllers of the cluster, empty if unknown.
	Deployed []check.Controller
	// kindsUnknown is true if the kinds of the controllers could not be read, or no controller was found.
	kindsUnknown bool
}

// Installed returns the kinds that Gates can hold and that are installed in the cluster.
func (o *Objects) Installed() ([]*meta.RESTMapping, error) {
	var kinds []*meta.RESTMapping
	for _, adapter := range target.All() {
		mapping, err := o.Mapper.RESTMapping(adapter.GroupKind())
		switch {
		case meta.IsNoMatchError(err):
		case err != nil:
			return nil, NewCall("list", "API groups", "", "", "system:discovery").Explain(err)
		default:
			kinds = append(kinds, mapping)
		}
	}
	return kinds, nil
}

// Each calls a function for each object of a kind in a namespace, page by page.
func (o *Objects) Each(ctx context.Context, kind *meta.RESTMapping, namespace, selector string, do func(*unstructured.Unstructured)) error {
	list := &unstructured.UnstructuredList{}
	opts := &client.ListOptions{Namespace: namespace, Limit: 500, Raw: &metav1.ListOptions{LabelSelector: selector}}
	for {
		list.SetGroupVersionKind(kind.GroupVersionKind.GroupVersion().WithKind(kind.GroupVersionKind.Kind + "List"))
		err := o.Cluster.List(ctx, list, opts)
		resource := kind.Resource.GroupResource().String()
		switch {
		case apierrors.IsForbidden(err):
			if !slices.Contains(o.Refused[namespace], resource) {
				o.Refused[namespace] = append(o.Refused[namespace], resource)
			}
			return nil
		case meta.IsNoMatchError(err), IsUnknownResource(err): // the kind existed when discovery was cached
			return nil
		case err != nil:
			return NewCall("list", resource, namespace, "", "view").Explain(err)
		}
		for i := range list.Items {
			do(&list.Items[i])
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			if kind.GroupVersionKind.Group != v1alpha1.GroupVersion.Group { // permission to list Gates does not imply permission to list Flux's kinds
				o.ListsRead++
			}
			return nil
		}
		list = &unstructured.UnstructuredList{}
	}
}

// EachTarget calls a function for each target of a Gate that a label selector matches.
func (o *Objects) EachTarget(ctx context.Context, scope verdict.Scope, g *v1alpha1.Gate, selector string, do func(*unstructured.Unstructured)) error {
	namespace := g.Namespace
	if slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool {
		return ref.SpansNamespaces() || cmp.Or(ref.Namespace, namespace) != namespace
	}) {
		namespace = ""
	}
	kinds, err := o.Installed()
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := o.Each(ctx, kind, namespace, selector, func(obj *unstructured.Unstructured) {
			if scope.GovernsInReach(g, obj) {
				do(obj)
			}
		}); err != nil {
			return err
		}
	}
	return nil
}

// Denied returns a line with the resources that the user is not permitted to list, empty if there are none.
func (o *Objects) Denied() string {
	var parts []string
	for namespace, resources := range o.Refused {
		where := fmt.Sprintf("in namespace %q", namespace)
		if namespace == "" {
			where = "in all namespaces"
		}
		parts = append(parts, strings.Join(resources, ", ")+" "+where)
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return fmt.Sprintf("you may not list %s: that needs the verb \"list\", which the ClusterRole view has", strings.Join(parts, " and "))
}

// Find returns the mapping for the name of a kind or resource, or for a short name such as ks.
func (o *Objects) Find(name string) (*meta.RESTMapping, error) {
	versioned, resource := schema.ParseResourceArg(strings.ToLower(name))
	wanted := []schema.GroupVersionResource{resource.WithVersion("")}
	if versioned != nil {
		wanted = append(wanted, *versioned)
	}
	var other schema.GroupVersionKind
	for _, gvr := range wanted {
		kinds, err := o.Mapper.KindsFor(gvr)
		if err != nil && !meta.IsNoMatchError(err) {
			return nil, NoCluster(err)
		}
		for _, gvk := range kinds {
			if isGateable(gvk.GroupKind()) {
				return o.Mapper.RESTMapping(gvk.GroupKind())
			}
			other = gvk
		}
	}
	if !other.Empty() {
		err := unsupportedKind(other.Kind, "", KindNames())
		if o.kindsUnknown {
			err = fmt.Errorf("%w; if the controller has more kinds in its flag --suspend-kinds, which you cannot see, set the flag here as well", err)
		}
		return nil, err
	}
	return nil, o.unknownKind(name)
}

func isGateable(kind schema.GroupKind) bool {
	_, err := target.For(kind.WithVersion("v1").GroupVersion().String(), kind.Kind)
	return err == nil
}

// KindNames returns the kinds that Gates can hold, sorted.
func KindNames() []string {
	var names []string
	for _, adapter := range target.All() {
		names = append(names, adapter.GroupKind().Kind)
	}
	slices.Sort(names)
	return names
}

// unknownKind returns the error for a kind that is not installed in the cluster. It suggests a similar name.
func (o *Objects) unknownKind(name string) error {
	lower := strings.TrimSuffix(strings.ToLower(name), "s")
	byLower := map[string]string{}
	var names []string
	for _, kind := range KindNames() {
		byLower[strings.ToLower(kind)] = kind
		names = append(names, strings.ToLower(kind))
	}
	if kind, ok := byLower[lower]; ok {
		return fmt.Errorf("this cluster has no %s: its kind is not installed", kind)
	}
	return unsupportedKind(name, nearest(lower, names), names)
}

// Get returns an object of a kind. If the object does not exist, the error suggests a similar name.
func (o *Objects) Get(ctx context.Context, kind *meta.RESTMapping, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind.GroupVersionKind)
	err := o.Cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
	if !apierrors.IsNotFound(err) || IsUnknownResource(err) {
		return obj, NewCall("get", kind.Resource.GroupResource().String(), namespace, name, "view").Explain(err)
	}
	return nil, notFound(ctx, o.Cluster, kind.GroupVersionKind, client.ObjectKey{Namespace: namespace, Name: name}, kind.GroupVersionKind.Kind, "kubectl get "+kind.Resource.Resource+" -A")
}
