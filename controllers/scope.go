package controllers

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/internal/verdict"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch

// newNamespace returns a namespace as the cache has it: only its metadata.
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

// labels returns the labels of a namespace, none if it does not exist. They must not be changed: those of a cache are not copied.
func (s scopes) labels(ctx context.Context, name string) (map[string]string, error) {
	for _, reader := range s.readers {
		namespace := newNamespace()
		err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
		if err == nil {
			return namespace.Labels, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the labels of namespace %q cannot be read: %w", name, err)
		}
	}
	return nil, nil
}
