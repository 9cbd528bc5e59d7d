package preview

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Set contains Gates with their GateExceptions, and the faults in these objects.
type Set struct {
	namespace  string
	gates      []*v1alpha1.Gate
	exceptions []*v1alpha1.GateException
	configMaps map[ConfigMap]*configMap
	faults     []Fault
	// validate returns the errors of a manifest. If it is nil, manifests are only decoded.
	validate func(*unstructured.Unstructured) field.ErrorList
	// overlays is true if files in different directories may define the same object. overlaid contains warnings about objects that the set
	// ignores because of that.
	overlays bool
	overlaid []Fault
	// validated is the number of manifests of our API group that were read.
	validated int
	// targets contains the objects that the Gates may govern.
	targets targets
	// annotated contains the warnings about the annotations of all manifests.
	annotated []Fault
	// read caches the calendars that were read.
	read map[calendarIn]timetable.Calendar
	// files maps each object to its file, empty for an object of a cluster.
	files map[key]string
	// fromCluster is true for a set of objects from a cluster. kept lists the Gates of the cluster whose specs are replaced by manifests.
	fromCluster bool
	kept        map[string]bool
	// brief is true if a preview omits details that only calendars show.
	brief bool
	// ctx and lookups bound each preview, see Within.
	ctx     context.Context //nolint:containedctx // a bounded set lasts as long as one request
	lookups int
	// names returns whether a reference in the namespace of a Gate names the target of the preview, nil for a preview of whole Gates.
	names func(ref *v1alpha1.TargetReference, namespace string) bool
	// most bounds the intervals of a Gate, zero for no bound.
	most int
}

// key identifies an object.
type key struct {
	kind, name string
}

// NewSet returns an empty set for manifests. Objects without a namespace are in the given namespace.
func NewSet(namespace string) *Set {
	return &Set{namespace: namespace, files: map[key]string{}, configMaps: map[ConfigMap]*configMap{}, read: map[calendarIn]timetable.Calendar{}}
}

// Validating makes s validate all manifests of our API group that it reads after the call, and returns s.
func (s *Set) Validating(validate func(*unstructured.Unstructured) field.ErrorList) *Set {
	s.validate = validate
	return s
}

// Overlaid makes s accept manifests of the same object in several directories, such as overlays for several clusters, and returns s. All
// manifests are validated, but only the first one of each object is previewed.
func (s *Set) Overlaid() *Set {
	s.overlays = true
	return s
}

// Validated returns how many manifests of our API group s has read.
func (s *Set) Validated() int { return s.validated }

// FromCluster returns a set of objects read from a cluster. Previews include the requests in the status and new ones in the annotations,
// and ignore exceptions that lack approvals.
func FromCluster(gates []*v1alpha1.Gate, exceptions []*v1alpha1.GateException) *Set {
	s := NewSet("")
	s.fromCluster, s.kept = true, map[string]bool{}
	s.gates, s.exceptions = slices.Clone(gates), slices.Clone(exceptions)
	for _, g := range gates {
		s.files[keyOf(g)] = ""
	}
	for _, e := range exceptions {
		s.files[keyOf(e)] = ""
	}
	return s
}

// AtMost stops the preview of a Gate after the given number of intervals, for callers that show no more.
func (s *Set) AtMost(intervals int) { s.most = intervals }

// ForTarget returns a copy of s that previews the Gates for one target, including exceptions and requests for that target only. names
// returns whether a reference in the namespace of a Gate names the target.
func (s *Set) ForTarget(names func(ref *v1alpha1.TargetReference, namespace string) bool) *Set {
	one := *s
	one.names = names
	return &one
}

// Brief returns a copy of s whose previews omit details that only calendars show: further causes in an interval, and when the first
// interval began. This saves two thirds of the work.
func (s *Set) Brief() *Set {
	brief := *s
	brief.brief = true
	return &brief
}

// Gates returns the names of all Gates in a set, and of the Gates that its exceptions refer to, as namespace/name, sorted.
func (s *Set) Gates() []string {
	var names []string
	for _, g := range s.gates {
		names = append(names, nameOf(g))
	}
	for _, e := range s.exceptions {
		names = append(names, e.Namespace+"/"+e.Spec.GateRef.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Err returns an InvalidError with all faults in manifests, nil if there are none.
func (s *Set) Err() error {
	if len(s.faults) == 0 {
		return nil
	}
	return &InvalidError{Faults: s.faults}
}

// Applied returns the set of a cluster after manifests were applied to it. The receiver must be from FromCluster. Gates keep their
// requests and status. An unchanged exception keeps its approvals. Any other exception in a manifest counts as approved.
func (s *Set) Applied(manifests *Set) *Set {
	after := FromCluster(s.gates, s.exceptions)
	after.namespace, after.faults, after.validate, after.annotated = manifests.namespace, manifests.faults, manifests.validate, manifests.annotated
	after.ctx, after.lookups = s.ctx, s.lookups
	after.applyConfigMaps(s, manifests)
	after.targets = manifests.targets
	for _, g := range manifests.gates {
		after.files[keyOf(g)] = manifests.files[keyOf(g)]
		i := slices.IndexFunc(after.gates, func(old *v1alpha1.Gate) bool { return nameOf(old) == nameOf(g) })
		if i < 0 {
			after.gates = append(after.gates, g)
			continue
		}
		applied := after.gates[i].DeepCopy()
		applied.Spec = g.Spec
		after.gates[i] = applied
		after.kept[nameOf(g)] = true
	}
	for _, e := range manifests.exceptions {
		i := slices.IndexFunc(after.exceptions, func(old *v1alpha1.GateException) bool { return nameOf(old) == nameOf(e) })
		switch {
		case i < 0:
			after.exceptions = append(after.exceptions, e)
		case equality.Semantic.DeepEqual(after.exceptions[i].Spec, e.Spec):
			continue
		default:
			applied := after.exceptions[i].DeepCopy()
			applied.Spec = e.Spec
			after.exceptions[i] = applied
		}
		after.files[keyOf(e)] = manifests.files[keyOf(e)]
	}
	return after
}

// Without returns a copy of the set without the objects of a cluster for which gone returns true.
func (s *Set) Without(gone func(obj metav1.Object) bool) *Set {
	rest := *s
	rest.gates = slices.DeleteFunc(slices.Clone(s.gates), func(g *v1alpha1.Gate) bool { return gone(g) })
	rest.exceptions = slices.DeleteFunc(slices.Clone(s.exceptions), func(e *v1alpha1.GateException) bool { return gone(e) })
	return &rest
}

// Has returns whether the set has an object with the same kind, namespace and name.
func (s *Set) Has(obj metav1.Object) bool {
	_, ok := s.files[keyOf(obj)]
	return ok
}

// isKnown returns whether an object is from the cluster and no manifest changes it.
func (s *Set) isKnown(obj metav1.Object) bool {
	file, ok := s.files[keyOf(obj)]
	return ok && file == ""
}

// keepsStatus returns whether a Gate has the requests and the status of the cluster.
func (s *Set) keepsStatus(g *v1alpha1.Gate) bool { return s.isKnown(g) || s.kept[nameOf(g)] }

// NotCreated is the creation time of exceptions that do not exist in a cluster yet. It is later than all other creation times.
var NotCreated = metav1.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)

// counting returns the exceptions of a Gate, except exceptions of a cluster that wait for approval.
func (s *Set) counting(g *v1alpha1.Gate) (counting []*v1alpha1.GateException) {
	for _, e := range s.exceptions {
		if gate.IsOf(g, e) && (!s.isKnown(e) || gate.Missing(g, e) == 0) {
			if e.CreationTimestamp.IsZero() {
				e = e.DeepCopy()
				e.CreationTimestamp = NotCreated
			}
			counting = append(counting, e)
		}
	}
	return counting
}

// WithoutApprovals returns a copy of a Gate whose exceptions need no approvals, because previews check the approvals beforehand, or
// assume them.
func WithoutApprovals(g *v1alpha1.Gate) *v1alpha1.Gate {
	g = g.DeepCopy()
	if g.Spec.Approvals != nil {
		g.Spec.Approvals.Exceptions = &v1alpha1.ApprovalRule{}
	}
	return g
}

// fault returns a fault in an object.
func (s *Set) fault(obj metav1.Object, field, cause string) Fault {
	return Fault{File: s.files[keyOf(obj)], Object: nameOf(obj), Field: field, Cause: cause}
}

func nameOf(obj metav1.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }

func keyOf(obj metav1.Object) key {
	if _, ok := obj.(*v1alpha1.Gate); ok {
		return key{v1alpha1.GateKind, nameOf(obj)}
	}
	return key{v1alpha1.GateExceptionKind, nameOf(obj)}
}
