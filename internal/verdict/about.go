package verdict

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// About returns the effect of a Gate on a target at an instant. It returns false if the Gate does not concern the target: the Gate does not
// govern it, and the target's annotations do not contain the name of the Gate.
func (s Scope) About(g *v1alpha1.Gate, obj *unstructured.Unstructured, now time.Time) (Gate, bool) {
	name := g.Namespace + "/" + g.Name
	named := slices.Contains(NamedBy(obj), name)
	switch {
	case named && !s.Reaches(obj.GetNamespace(), g.Namespace) && g.Spec.Suspend:
		return Gate{Name: name, Effect: Suspended}, true // no shard reconciles a suspended Gate
	case named && !s.Reaches(obj.GetNamespace(), g.Namespace):
		return Gate{Name: name, Effect: Denied}, true
	case named && !g.DeletionTimestamp.IsZero():
		return Gate{Name: name, Effect: Missing}, true
	case s.Governs(g, obj) && s.Reaches(g.Namespace, obj.GetNamespace()):
		is := Governing(name, s.ForTarget(g, obj), now)
		is.Overlaid = is.wasOpen() != (Gate{Object: g}).wasOpen()
		if AllowsInitial(g) {
			is = is.initially(obj, now)
		}
		return is, true
	case !slices.Contains(HeldBy(obj), name):
		return Gate{}, false
	case s.Governs(g, obj) && !g.Audits():
		return OutOfReach(name, g, now), true
	}
	return Leaving(name, g, now), true
}

// NamesOn returns the sorted names of the Gates that hold a target or that it refers to, without duplicates.
func NamesOn(obj *unstructured.Unstructured) []string {
	names := slices.Concat(NamedBy(obj), HeldBy(obj))
	slices.Sort(names)
	return slices.Compact(names)
}
