package view

import (
	"cmp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// HeldWithoutGate returns whether this controller holds a target although a client has removed the annotation with the names of the
// Gates.
func HeldWithoutGate(obj *unstructured.Unstructured) bool {
	adapter := target.Of(obj)
	return len(verdict.HeldBy(obj)) == 0 && adapter != nil && adapter.Observe(&target.Object{Unstructured: *obj}, verdict.Us) == target.Held
}

// holders returns the Gates that hold a target. For a target that is held without a Gate, it returns an empty name in the namespace of
// the target.
func holders(obj *unstructured.Unstructured) []string {
	if HeldWithoutGate(obj) {
		return []string{obj.GetNamespace() + "/"}
	}
	return verdict.HeldBy(obj)
}

// ParseKey returns the key of a Gate from its name, given as namespace/name.
func ParseKey(name string) types.NamespacedName {
	namespace, name, _ := strings.Cut(name, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// NamespaceFor returns the namespace of the targets that a reference matches, v1alpha1.AnyName if it spans namespaces.
func NamespaceFor(ref *v1alpha1.TargetReference, gate *v1alpha1.Gate) string {
	if ref.SpansNamespaces() {
		return v1alpha1.AnyName
	}
	return cmp.Or(ref.Namespace, gate.Namespace)
}

// NamespacesFor returns the namespace of a Gate, and the namespaces in spec.targets. References that span namespaces add
// v1alpha1.AnyName.
func NamespacesFor(g *v1alpha1.Gate) []string {
	namespaces := UniqueKeys[string]{}
	namespaces.AddKeys(g.Namespace)
	for i := range g.Spec.Targets {
		namespaces.AddKeys(NamespaceFor(&g.Spec.Targets[i], g))
	}
	return namespaces.Keys
}

// IndexKeys returns the keys of the references that may match an object: references by name, to all objects in its namespace, and to all
// objects in all namespaces.
func IndexKeys(obj *unstructured.Unstructured) []string {
	kind, namespace := obj.GroupVersionKind().GroupKind(), obj.GetNamespace()
	return []string{
		objectKey(kind, namespace, obj.GetName()),
		objectKey(kind, namespace, v1alpha1.AnyName),
		objectKey(kind, v1alpha1.AnyName, v1alpha1.AnyName),
	}
}

// objectKey returns the index key of an object, or of all objects of a supported kind.
func objectKey(kind schema.GroupKind, namespace, name string) string {
	return kind.String() + "/" + namespace + "/" + name
}

// IndexKey returns the index key for the kind and namespace of obj and the given name, which may be v1alpha1.AnyName.
func IndexKey(obj *unstructured.Unstructured, name string) string {
	return objectKey(obj.GroupVersionKind().GroupKind(), obj.GetNamespace(), name)
}

// HasEmptyReference returns whether the status of a Gate reports a reference that matches nothing.
func HasEmptyReference(g *v1alpha1.Gate) bool {
	return conditions.GetReason(g, meta.ReadyCondition) == v1alpha1.NoTargetsReason
}
