package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// selection is a set of targets.
type selection struct {
	targets []*target.Object
	uids    map[types.UID]bool
}

func (s *selection) add(found ...*target.Object) {
	for _, t := range found {
		if !s.uids[t.GetUID()] {
			s.uids[t.GetUID()] = true
			s.targets = append(s.targets, t)
		}
	}
}

// selectTargets returns the objects that a Gate governs, because its spec names
// them or because they name it, each once. Denied are those that name it from a
// namespace from which they must not.
func (r *GateReconciler) selectTargets(ctx context.Context, obj *v1alpha1.Gate, result *outcomes) (governed, denied selection) {
	governed, denied = selection{uids: map[types.UID]bool{}}, selection{uids: map[types.UID]bool{}}
	for _, ref := range obj.Spec.Targets {
		namespace := namespaceOf(ref, obj)
		if !r.reaches(obj.Namespace, namespace) {
			result.fail(ref.Kind, namespace, ref.Name, v1alpha1.AccessDeniedReason,
				fmt.Sprintf("targets in namespace %q cannot be held from namespace %q"+crossNamespace, namespace, obj.Namespace), nil)
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
		governed.add(found...)
	}
	naming, err := r.Targets.Naming(ctx, client.ObjectKeyFromObject(obj).String())
	if err != nil {
		result.fail("", obj.Namespace, v1alpha1.AnyName, v1alpha1.ReadFailedReason, err.Error(), err)
	}
	for _, t := range naming {
		if r.reaches(t.GetNamespace(), obj.Namespace) {
			governed.add(t)
		} else {
			denied.add(t)
		}
	}
	return governed, denied
}

// crossNamespace ends each message about a reference that is not allowed.
const crossNamespace = ": the controller runs without --allow-cross-namespace-refs"

// reaches returns whether something in a namespace may refer to another.
func (r *GateReconciler) reaches(from, to string) bool {
	return from == to || r.AllowCrossNamespaceRefs
}

// targetField is by which the Gates are looked up that may govern an object: its key,
// or that of all objects of its kind in its namespace.
const targetField = "spec.targets"

// targetedBy returns what the spec of a Gate names, for the index by targetField.
func targetedBy(obj client.Object) []string {
	gate, ok := obj.(*v1alpha1.Gate)
	if !ok {
		return nil
	}
	var named []string
	for _, ref := range gate.Spec.Targets {
		if adapter, err := target.For(ref.APIVersion, ref.Kind); err == nil {
			named = append(named, objectKey(adapter.GroupKind(), namespaceOf(ref, gate), ref.Name))
		}
	}
	return named
}

// keyOf returns the key of an object by some name, which may be v1alpha1.AnyName.
func keyOf(obj *unstructured.Unstructured, name string) string {
	return objectKey(obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), name)
}

func namespaceOf(ref v1alpha1.TargetReference, gate *v1alpha1.Gate) string {
	return cmp.Or(ref.Namespace, gate.Namespace)
}

// governs returns whether the spec of a Gate names an object, or the object the
// Gate: names are those that it has.
func governs(gate *v1alpha1.Gate, obj *unstructured.Unstructured, names []string) bool {
	if slices.Contains(names, client.ObjectKeyFromObject(gate).String()) {
		return true
	}
	for _, ref := range gate.Spec.Targets {
		if namespaceOf(ref, gate) != obj.GetNamespace() || (ref.Name != v1alpha1.AnyName && ref.Name != obj.GetName()) {
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
