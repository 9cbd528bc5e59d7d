package verdict_test

import (
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// modern is what cert-manager can do from v1.21.1 on, old what it could do before.
var (
	modern = target.Definition{Spec: map[string]bool{"renewal": true, "renewBefore": true}}
	old    = target.Definition{Spec: map[string]bool{"renewBefore": true}}
)

// edit changes an object.
type edit func(*target.Object)

func newObject(apiVersion, kind, name string, spec map[string]any, edits ...edit) *target.Object {
	obj := &target.Object{Unstructured: unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name, "namespace": "shop"}, "spec": spec,
	}}}
	for _, edit := range edits {
		edit(obj)
	}
	target.Trim(&obj.Unstructured, verdict.Us)
	return obj
}

func kustomization(name string, edits ...edit) *target.Object {
	return newObject("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, map[string]any{"path": "./"}, edits...)
}

// certificate was issued eleven days ago for ninety.
func certificate(edits ...edit) *target.Object {
	return newObject("cert-manager.io/v1", "Certificate", "www", map[string]any{"secretName": "www"}, append([]edit{func(obj *target.Object) {
		obj.Object["status"] = map[string]any{
			"notBefore": noon.Add(-11 * 24 * time.Hour).Format(time.RFC3339), "notAfter": noon.Add(79 * 24 * time.Hour).Format(time.RFC3339),
			"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready"}},
		}
	}}, edits...)...)
}

func annotated(name, value string) edit {
	return func(obj *target.Object) {
		annotations := map[string]string{name: value}
		maps.Copy(annotations, obj.GetAnnotations())
		obj.SetAnnotations(annotations)
	}
}

// without removes annotations.
func without(names ...string) edit {
	return func(obj *target.Object) {
		annotations := obj.GetAnnotations()
		for _, name := range names {
			delete(annotations, name)
		}
		obj.SetAnnotations(annotations)
	}
}

func labelled(labels map[string]string) edit {
	return func(obj *target.Object) { obj.SetLabels(labels) }
}

// told sets the condition Approved of an object, with its time.
func told(status metav1.ConditionStatus, reason string, since time.Time) edit {
	return func(obj *target.Object) {
		obj.SetConditions(append(obj.GetConditions(), metav1.Condition{
			Type: v1alpha1.ApprovedCondition, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(since),
		}))
	}
}

// heldBy has us hold an object with some fields of its spec, in the names of Gates.
func heldBy(names string, lever map[string]any) edit {
	return func(obj *target.Object) {
		field := ""
		for name, value := range lever {
			field = name
			_ = unstructured.SetNestedField(obj.Object, value, "spec", name)
		}
		annotated(v1alpha1.HeldByAnnotation, names)(obj)
		obj.SetManagedFields([]metav1.ManagedFieldsEntry{{
			Manager: v1alpha1.FieldManager, Operation: metav1.ManagedFieldsOperationApply, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + v1alpha1.HeldByAnnotation + `":{},"f:` + v1alpha1.PassAnnotation + `":{}}},"f:spec":{"f:` + field + `":{}}}`),
		}})
	}
}

var suspension = map[string]any{"suspend": true}

func setStatus(obj *target.Object, field string, value any) error {
	return unstructured.SetNestedField(obj.Object, value, "status", field)
}

// rule returns the ruling on an object if nothing stands in the way of a release.
func rule(obj *target.Object, gates []verdict.Gate, definition target.Definition, now time.Time) verdict.Ruling {
	return verdict.Rule(verdict.Situation{Object: obj, Gates: gates, Definition: definition, Now: now})
}
