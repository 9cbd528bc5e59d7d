package view

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// GateRefField is the index of exceptions by their Gate. It is also a selectable field in the CRD.
const GateRefField = "spec.gateRef.name"

// ExceptionsFor returns all exceptions that refer to a Gate, including exceptions that are not in force. They must not be changed.
func ExceptionsFor(ctx context.Context, reader client.Reader, gate types.NamespacedName) ([]*v1alpha1.GateException, error) {
	list := &v1alpha1.GateExceptionList{}
	if err := reader.List(ctx, list, client.InNamespace(gate.Namespace), client.MatchingFields{GateRefField: gate.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	exceptions := make([]*v1alpha1.GateException, len(list.Items))
	for i := range list.Items {
		exceptions[i] = &list.Items[i]
	}
	return exceptions, nil
}

// GateKeyFor returns the key of the Gate that an exception refers to.
func GateKeyFor(e *v1alpha1.GateException) types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Spec.GateRef.Name}
}
