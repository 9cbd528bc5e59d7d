package verdict

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Us identifies the holds of this controller.
var Us = target.Identity{Manager: v1alpha1.FieldManager, HeldBy: v1alpha1.HeldByAnnotation, Pass: v1alpha1.PassAnnotation}

// HeldBy returns the names of the Gates that hold a target, from its annotation.
func HeldBy(obj *unstructured.Unstructured) []string {
	return target.ParseHeldBy(obj.GetAnnotations()[v1alpha1.HeldByAnnotation])
}

// NamedBy returns the names of the Gates that a target refers to by annotation.
func NamedBy(obj *unstructured.Unstructured) []string {
	return target.ParseGates(obj.GetAnnotations()[v1alpha1.GatesAnnotation], obj.GetNamespace())
}

// Scope determines which objects the references in Gates may match, depending on namespaces.
type Scope struct {
	// Reaches returns whether objects of a namespace may refer to another namespace. It is nil if that is unknown.
	Reaches func(from, to string) bool
	// Labels returns the labels of a namespace. It is called only for references that select namespaces. If Labels is nil, such references
	// match nothing.
	Labels func(namespace string) map[string]string
	// Own is the namespace of the controller. References that span namespaces match nothing there.
	Own string
}

// Governs returns whether the spec of a Gate refers to an object, or an annotation of the object refers to the Gate.
func (s Scope) Governs(g *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	return slices.Contains(NamedBy(obj), g.Namespace+"/"+g.Name) || slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool {
		return s.Names(&ref, g.Namespace, obj)
	})
}

// GovernsInReach is like Governs, but returns false if the Gate must not refer to the namespace of the object.
func (s Scope) GovernsInReach(g *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	return s.inReach(g, obj) && s.Governs(g, obj)
}

func (s Scope) inReach(g *v1alpha1.Gate, obj *unstructured.Unstructured) bool {
	return s.Reaches == nil || s.Reaches(g.Namespace, obj.GetNamespace())
}

// Names returns whether a reference matches an object. namespace is the namespace of the Gate with the reference.
func (s Scope) Names(ref *v1alpha1.TargetReference, namespace string, obj *unstructured.Unstructured) bool {
	if ref.Name != v1alpha1.AnyName && ref.Name != obj.GetName() {
		return false
	}
	if !ref.SpansNamespaces() && cmp.Or(ref.Namespace, namespace) != obj.GetNamespace() {
		return false
	}
	adapter, err := target.For(ref.APIVersion, ref.Kind)
	return err == nil && adapter.GroupKind() == obj.GroupVersionKind().GroupKind() && Matches(ref.Selector(), obj.GetLabels()) &&
		(!ref.SpansNamespaces() || s.Spans(ref, obj.GetNamespace()))
}

// Spans returns whether a reference that spans namespaces includes a namespace.
func (s Scope) Spans(ref *v1alpha1.TargetReference, namespace string) bool {
	return namespace != s.Own && (ref.NamespaceSelector == nil || s.Labels != nil && Matches(ref.NamespaceSelector.Kubernetes(), s.Labels(namespace)))
}

// Matches returns whether labels match a selector. An invalid selector matches nothing.
func Matches(selector *metav1.LabelSelector, set map[string]string) bool {
	if len(selector.MatchExpressions) == 0 {
		return labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(set))
	}
	valid, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && valid.Matches(labels.Set(set))
}
