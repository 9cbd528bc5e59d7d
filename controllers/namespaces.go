package controllers

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/queue"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// newNamespace returns a namespace of which only the metadata is read.
func newNamespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// TrimNamespaces is the transform for the cache of namespaces: nothing is kept but their names and labels.
func TrimNamespaces(obj any) (any, error) {
	if namespace, ok := obj.(*metav1.PartialObjectMetadata); ok {
		namespace.ManagedFields, namespace.Annotations = nil, nil
	}
	return obj, nil
}

// namespaces handles the events of namespaces.
func (e *Events) namespaces() toolscache.ResourceEventHandler {
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			if namespace, ok := obj.(*metav1.PartialObjectMetadata); ok && !isInInitialList { // at the start all targets are looked at
				e.namespace(nil, namespace)
			}
		},
		UpdateFunc: func(before, after any) {
			b, ok1 := before.(*metav1.PartialObjectMetadata)
			a, ok2 := after.(*metav1.PartialObjectMetadata)
			if ok1 && ok2 && !maps.Equal(b.Labels, a.Labels) {
				e.namespace(b, a)
			}
		},
	}
}

// namespace has the targets looked at which Gates begin or cease to govern because a namespace is new or has other labels, and the
// GateLock of one that is new.
func (e *Events) namespace(before, after *metav1.PartialObjectMetadata) {
	if before == nil && len(e.indexed(targetField, after.Name)) > 0 {
		e.Wake.Locks(after.Name)
	}
	for _, g := range e.indexed(targetField, v1alpha1.AnyName) {
		for i := range g.Spec.Targets {
			ref := &g.Spec.Targets[i]
			adapter, err := target.For(ref.APIVersion, ref.Kind)
			if err != nil || !ref.SpansNamespaces() || e.spans(ref, before) == e.spans(ref, after) {
				continue
			}
			if adapter.GroupKind() == target.Machine {
				e.Wake.Machines(client.ObjectKeyFromObject(g))
				continue
			}
			found, err := e.Selector.Targets.Select(context.Background(), adapter, after.Name, ref)
			if err == nil { // what is not read yet is looked at when it is
				e.Wake.Targets(queue.Change, keysOfTargets(found)...)
			}
		}
		if after.Name == e.Selector.Own { // who selects it is told
			e.Wake.Gate(client.ObjectKeyFromObject(g))
		}
	}
}

// spans returns whether a reference is about a namespace. It is nil before it was there.
func (e *Events) spans(ref *v1alpha1.TargetReference, namespace *metav1.PartialObjectMetadata) bool {
	if namespace == nil {
		return false
	}
	scope := verdict.Scope{Own: e.Selector.Own, Labels: func(string) map[string]string { return namespace.Labels }}
	return scope.Spans(ref, namespace.Name)
}

// scopes make scopes for one look at a target each.
type scopes struct {
	Reach
	// readers are asked for a namespace one after the other: the first event of an object may come before that of its namespace.
	readers []client.Reader
}

// scope returns the scope of a look, and what kept it from reading labels.
func (s scopes) scope(ctx context.Context) (verdict.Scope, func() error) {
	var failed error
	var read map[string]map[string]string // most looks read none
	return verdict.Scope{Reaches: s.reaches, Own: s.Own, Labels: func(name string) map[string]string {
		labels, known := read[name]
		if !known {
			var err error
			if labels, err = s.labels(ctx, name); err != nil {
				failed = err
			}
			if read == nil {
				read = map[string]map[string]string{}
			}
			read[name] = labels
		}
		return labels
	}}, func() error { return failed }
}

// labels returns the labels of a namespace, none if it does not exist.
func (s scopes) labels(ctx context.Context, name string) (map[string]string, error) {
	for _, reader := range s.readers {
		namespace := newNamespace()
		err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace)
		if err == nil {
			return namespace.Labels, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the labels of namespace %q cannot be read: %w", name, err)
		}
	}
	return nil, nil
}
