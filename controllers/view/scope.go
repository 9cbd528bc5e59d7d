package view

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

// NewNamespace returns an empty namespace of the type that the cache contains, which has only metadata.
func NewNamespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// TrimNamespaces is the transform for the cache of namespaces. It keeps only names and labels.
func TrimNamespaces(obj any) (any, error) {
	if namespace, ok := obj.(*metav1.PartialObjectMetadata); ok {
		namespace.ManagedFields, namespace.Annotations = nil, nil
	}
	return obj, nil
}

// Scopes creates a verdict.Scope for each evaluation of a target.
type Scopes struct {
	Reach
	// Readers are queried in order, because the first event of an object may precede the first event of its namespace.
	Readers []client.Reader
}

// Scope returns a scope for one evaluation, and a function that returns the error if labels could not be read.
func (s Scopes) Scope(ctx context.Context) (verdict.Scope, func() error) {
	var failed error
	var read map[string]map[string]string // read lazily, because most evaluations need no labels
	return verdict.Scope{Reaches: s.Reaches, Own: s.Own, Labels: func(name string) map[string]string {
		labels, known := read[name]
		if !known {
			var err error
			if labels, err = s.Labels(ctx, name); err != nil {
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

// Labels returns the labels of a namespace, nil if it does not exist. They must not be changed, because labels from a cache are not
// copied.
func (s Scopes) Labels(ctx context.Context, name string) (map[string]string, error) {
	for _, reader := range s.Readers {
		namespace := NewNamespace()
		err := reader.Get(ctx, client.ObjectKey{Name: name}, namespace, client.UnsafeDisableDeepCopy)
		if err == nil {
			return namespace.Labels, nil
		}
		if !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf(msgLabelsUnread, name, err)
		}
	}
	return nil, nil
}
