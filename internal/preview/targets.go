package preview

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// targets contains the objects that the Gates of a set may govern, and the labels of namespaces.
type targets struct {
	objects []*unstructured.Unstructured
	known   map[key]bool
	labels  map[string]map[string]string
	// scope is the scope of a cluster, nil if there are only manifests.
	scope *verdict.Scope
}

// SetScope sets the scope of the cluster that manifests are compared with.
func (s *Set) SetScope(scope verdict.Scope) { s.targets.scope = &scope }

// AddTargets adds objects of a cluster that Gates may govern.
func (s *Set) AddTargets(objects ...*unstructured.Unstructured) {
	for _, obj := range objects {
		s.targets.add(obj, obj.GetNamespace())
	}
}

// add adds an object to the objects of a namespace, unless it has already been added. It keeps only the name, the labels and the
// references to Gates.
func (t *targets) add(obj *unstructured.Unstructured, namespace string) {
	k := key{obj.GroupVersionKind().GroupKind().String(), namespace + "/" + obj.GetName()}
	if t.known[k] {
		return
	}
	if t.known == nil {
		t.known = map[key]bool{}
	}
	t.known[k] = true
	kept := &unstructured.Unstructured{}
	kept.SetGroupVersionKind(obj.GroupVersionKind())
	kept.SetNamespace(namespace)
	kept.SetName(obj.GetName())
	kept.SetLabels(obj.GetLabels())
	if gates, ok := obj.GetAnnotations()[v1alpha1.GatesAnnotation]; ok {
		kept.SetAnnotations(map[string]string{v1alpha1.GatesAnnotation: gates})
	}
	t.objects = append(t.objects, kept)
}

// readTarget adds the object of a manifest if Gates can govern its kind. For a Namespace, it adds the labels.
func (s *Set) readTarget(obj *unstructured.Unstructured) {
	if gvk := obj.GroupVersionKind(); gvk.Group == "" && gvk.Kind == "Namespace" {
		if s.targets.labels == nil {
			s.targets.labels = map[string]map[string]string{}
		}
		s.targets.labels[obj.GetName()] = obj.GetLabels()
		return
	}
	if _, err := target.For(obj.GetAPIVersion(), obj.GetKind()); err != nil {
		return
	}
	namespace := obj.GetNamespace()
	if namespace == "" {
		namespace = s.namespace
	}
	s.targets.add(obj, namespace)
}

// in returns the scope of the cluster, or a scope with the namespaces in the manifests.
func (t *targets) in() verdict.Scope {
	if t.scope != nil {
		return *t.scope
	}
	return verdict.Scope{Labels: func(namespace string) map[string]string { return t.labels[namespace] }}
}

// NewTargets returns the references of the Gates returned by widened. Each reference has an explicit namespace.
func (s *Set) NewTargets(before *Set) (refs []v1alpha1.TargetReference) {
	for _, g := range s.widened(before) {
		for _, ref := range g.Spec.Targets {
			switch {
			case ref.SpansNamespaces():
				ref.Namespace = v1alpha1.AnyName
			case ref.Namespace == "":
				ref.Namespace = g.Namespace
			}
			refs = append(refs, ref)
		}
	}
	return refs
}

// widened returns the Gates in manifests that enforce, have a selector in spec.targets, and whose spec.targets differ from the same field
// in another set, which may be nil.
func (s *Set) widened(before *Set) (gates []*v1alpha1.Gate) {
	for _, g := range s.gates {
		old := before.gate(nameOf(g))
		if s.isKnown(g) || g.Audits() || old != nil && equality.Semantic.DeepEqual(old.Spec.Targets, g.Spec.Targets) ||
			!slices.ContainsFunc(g.Spec.Targets, func(ref v1alpha1.TargetReference) bool { return verdict.HasSelector(&ref) }) {
			continue
		}
		gates = append(gates, g)
	}
	return gates
}

// gate returns the Gate with the given name, nil if the set is nil or does not contain the Gate.
func (s *Set) gate(name string) *v1alpha1.Gate {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.gates, func(g *v1alpha1.Gate) bool { return nameOf(g) == name }); i >= 0 {
		return s.gates[i]
	}
	return nil
}

// wide returns a warning about each Gate in manifests whose selectors match many more objects than the Gate governs in another set, which
// may be nil.
func (s *Set) wide(before *Set) (warnings []Fault) {
	for _, g := range s.widened(before) {
		if w, many := s.targets.in().Widest(g, before.governed(nameOf(g)), s.targets.objects); many {
			warnings = append(warnings, s.fault(g, w.Field(), w.String()+": "+verdict.WideAdvice))
		}
	}
	return warnings
}

// governed returns how many targets a Gate has, according to its status or the manifests.
func (s *Set) governed(name string) (n int) {
	g := s.gate(name)
	switch {
	case g == nil:
	case s.fromCluster && g.Status.Targets != nil:
		n = int(g.Status.Targets.Total)
	case !s.fromCluster:
		scope := s.targets.in()
		for _, obj := range s.targets.objects {
			if scope.GovernsInReach(g, obj) {
				n++
			}
		}
	}
	return n
}
