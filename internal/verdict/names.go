package verdict

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Us is how we recognize our holds.
var Us = target.Identity{Manager: v1alpha1.FieldManager, HeldBy: v1alpha1.HeldByAnnotation, Refresh: v1alpha1.RefreshAnnotation}

// HeldBy returns the Gates whose names are on a target because they hold it.
func HeldBy(obj *unstructured.Unstructured) []string {
	return target.ParseHeldBy(obj.GetAnnotations()[v1alpha1.HeldByAnnotation])
}

// NamedBy returns the Gates that a target names itself.
func NamedBy(obj *unstructured.Unstructured) []string {
	return target.ParseGates(obj.GetAnnotations()[v1alpha1.GatesAnnotation], obj.GetNamespace())
}

// Governs returns whether the spec of a Gate names an object, or the object names the
// Gate.
func Governs(g *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	return slices.Contains(NamedBy(obj), g.Namespace+"/"+g.Name) || slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool {
		return Names(ref, g.Namespace, obj)
	})
}

// Names returns whether a reference of a Gate in a namespace names an object.
func Names(ref v1alpha1.TargetReference, namespace string, obj *unstructured.Unstructured) bool {
	if cmp.Or(ref.Namespace, namespace) != obj.GetNamespace() || ref.Name != v1alpha1.AnyName && ref.Name != obj.GetName() {
		return false
	}
	adapter, err := target.For(ref.APIVersion, ref.Kind)
	return err == nil && adapter.GroupKind() == obj.GroupVersionKind().GroupKind() &&
		labels.SelectorFromSet(ref.MatchLabels).Matches(labels.Set(obj.GetLabels()))
}
