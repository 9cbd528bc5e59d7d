package view

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Reach determines which references across namespaces are allowed.
type Reach struct {
	// AllowCrossNamespaceRefs allows Gates to hold and depend on objects in other namespaces, and objects to refer to Gates in other
	// namespaces. Otherwise, permissions in one namespace have no effect on other namespaces. The field is the inverse of
	// --no-cross-namespace-refs, so that the zero value is safe.
	AllowCrossNamespaceRefs bool
	// Own is the namespace of the controller, empty if unknown.
	Own string
	// Namespaces are the namespaces whose Gates are reconciled. Empty means all namespaces.
	Namespaces map[string]ctrlcache.Config
}

// Reaches returns whether objects in a namespace may refer to another namespace.
func (r Reach) Reaches(from, to string) bool {
	return from == to || r.AllowCrossNamespaceRefs
}

// Spans returns whether the Gates of all namespaces are reconciled.
func (r Reach) Spans() bool { return len(r.Namespaces) == 0 }

// Watches returns whether the Gates of a namespace are reconciled.
func (r Reach) Watches(namespace string) bool {
	_, ok := r.Namespaces[namespace]
	return ok || r.Spans()
}

// OutOfReach returns why objects in a namespace cannot be referred to from another namespace, empty if they can be. objects and done are
// words for the message. For example, done may be held.
func (r Reach) OutOfReach(objects, done, from, namespace string) string {
	where := fmt.Sprintf("namespace %q", namespace)
	if namespace == v1alpha1.AnyName {
		where = "other namespaces"
	}
	switch {
	case !r.Reaches(from, namespace):
		return fmt.Sprintf(msgOutOfReach, objects, where, done, from)
	case !r.Watches(namespace):
		return fmt.Sprintf(msgNotWatched, where)
	}
	return ""
}

// all returns the namespaces to list, or metav1.NamespaceAll if all namespaces are watched.
func (r Reach) all() []string {
	if r.Spans() {
		return []string{metav1.NamespaceAll}
	}
	return slices.Collect(maps.Keys(r.Namespaces))
}

// Includes returns whether a reference selects a namespace. The namespace is nil if it does not exist yet.
func (r Reach) Includes(ref *v1alpha1.TargetReference, namespace *metav1.PartialObjectMetadata) bool {
	if namespace == nil {
		return false
	}
	scope := verdict.Scope{Own: r.Own, Labels: func(string) map[string]string { return namespace.Labels }}
	return scope.Spans(ref, namespace.Name)
}
