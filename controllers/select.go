package controllers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// selectTargets returns the objects that the spec of a Gate names, each once,
// and the set of their UIDs.
func (r *GateReconciler) selectTargets(ctx context.Context, obj *v1alpha1.Gate, result *outcomes) ([]*target.Object, map[types.UID]bool) {
	var selected []*target.Object
	seen := map[types.UID]bool{}
	for _, ref := range obj.Spec.Targets {
		namespace := ref.Namespace
		if namespace == "" {
			namespace = obj.Namespace
		}
		if namespace != obj.Namespace && r.NoCrossNamespaceRefs {
			result.fail(ref.Kind, namespace, ref.Name, v1alpha1.AccessDeniedReason,
				fmt.Sprintf("targets in namespace %q cannot be held from namespace %q, cross-namespace references are disabled", namespace, obj.Namespace), nil)
			continue
		}
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		if err != nil {
			result.fail(ref.Kind, namespace, ref.Name, v1alpha1.UnsupportedKindReason, err.Error(), nil)
			continue
		}
		found, err := r.Targets.Select(ctx, adapter, namespace, ref)
		switch {
		case errors.Is(err, ErrNotInstalled):
			result.fail(ref.Kind, namespace, ref.Name, v1alpha1.CRDNotFoundReason, err.Error(), nil)
		case err != nil:
			result.fail(ref.Kind, namespace, ref.Name, v1alpha1.ReadFailedReason, err.Error(), err)
		}
		for _, t := range found {
			if !seen[t.GetUID()] {
				seen[t.GetUID()] = true
				selected = append(selected, t)
			}
		}
	}
	return selected, seen
}

// governs returns whether the spec of a Gate names an object.
func governs(gate *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	for _, ref := range gate.Spec.Targets {
		namespace := ref.Namespace
		if namespace == "" {
			namespace = gate.Namespace
		}
		if namespace != obj.GetNamespace() || (ref.Name != v1alpha1.AnyName && ref.Name != obj.GetName()) {
			continue
		}
		adapter, err := target.For(ref.APIVersion, ref.Kind)
		if err == nil && adapter.GroupKind() == obj.GroupVersionKind().GroupKind() &&
			labels.SelectorFromSet(ref.MatchLabels).Matches(labels.Set(obj.GetLabels())) {
			return true
		}
	}
	return false
}
