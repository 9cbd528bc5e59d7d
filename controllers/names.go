package controllers

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/refresh"
	"github.com/fluxcd/gating-controller/internal/target"
)

// us is by what we know our holds.
var us = target.Identity{Manager: v1alpha1.FieldManager, HeldBy: v1alpha1.HeldByAnnotation, Refresh: v1alpha1.RefreshAnnotation}

// namespacesOf returns the namespaces to list, all of them if none are given.
func namespacesOf(watched map[string]ctrlcache.Config) []string {
	if len(watched) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return slices.Collect(maps.Keys(watched))
}

// heldBy returns the Gates that hold a target, or the one that has the
// certificates of a Machine refreshed.
func heldBy(obj *unstructured.Unstructured) []string {
	if record := refresh.ParseRecord(obj.GetAnnotations()[v1alpha1.RefreshAnnotation]); record != nil && isMachine(obj) {
		return []string{record.Gate}
	}
	return target.ParseHeldBy(obj.GetAnnotations()[v1alpha1.HeldByAnnotation])
}

// namedBy returns the Gates that a target names itself.
func namedBy(obj *unstructured.Unstructured) []string {
	return target.ParseGates(obj.GetAnnotations()[v1alpha1.GatesAnnotation], obj.GetNamespace())
}

// heldByNobody returns whether we hold a target in no Gate's name: somebody
// removed the annotation.
func heldByNobody(obj *unstructured.Unstructured) bool {
	adapter := target.Of(obj)
	return len(heldBy(obj)) == 0 && adapter != nil && adapter.Observe(&target.Object{Unstructured: *obj}, us) == target.Held
}

// holders returns the Gates that hold a target. The empty name in its namespace
// stands for nobody.
func holders(obj *unstructured.Unstructured) []string {
	if heldByNobody(obj) {
		return []string{obj.GetNamespace() + "/"}
	}
	return heldBy(obj)
}
