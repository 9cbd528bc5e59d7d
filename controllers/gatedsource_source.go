package controllers

import (
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
	"github.com/fluxcd/gating-controller/internal/target"
)

// sourceOf returns what a GatedSource has to know of a source.
func sourceOf(obj *unstructured.Unstructured, owner types.UID) *promotion.Source {
	spec, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec")
	observed, _, _ := unstructured.NestedInt64(obj.Object, target.ObservedGenerationPath...)
	t, generation := &target.Object{Unstructured: *obj}, obj.GetGeneration()
	ready := meta.FindStatusCondition(t.GetConditions(), fluxmeta.ReadyCondition)
	s := &promotion.Source{
		Revision: target.Revision(t), Current: observed == generation, Unchanged: isUnchanged(obj), GatedBy: obj.GetAnnotations()[v1alpha1.PinnedByAnnotation],
		Deleted: !obj.GetDeletionTimestamp().IsZero(), Ready: ready,
		// source-controller notes that it has observed a generation only once it has fetched that, but what it says of it at once.
		Failed: ready != nil && ready.Status == metav1.ConditionFalse && (observed == generation || ready.ObservedGeneration == generation),
		Owned:  slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner }),
	}
	s.Spec, _ = spec.(map[string]any)
	return s
}

// isUnchanged returns whether the artifact of a source has what its spec asks for at that revision, by what source-controller itself
// compares. A commit and a digest have the same content wherever they are fetched from, the version of a chart has not.
func isUnchanged(obj *unstructured.Unstructured) bool {
	content, known := target.ContentOf[obj.GetKind()]
	for _, c := range content {
		asked, _, _ := unstructured.NestedFieldNoCopy(obj.Object, c.Spec...)
		has, _, _ := unstructured.NestedFieldNoCopy(obj.Object, c.Observed...)
		known = known && (reflect.DeepEqual(asked, has) || isNothing(asked) && isNothing(has))
	}
	return known
}

// isNothing returns whether a field says nothing: false is as good as missing.
func isNothing(value any) bool { return value == nil || value == false }
