package target

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a target of any kind. Unlike the unstructured object in it, it has
// the conditions contract of the GitOps Toolkit.
type Object struct {
	unstructured.Unstructured
}

// DeepCopyObject keeps the type, which that of Unstructured would not.
func (o *Object) DeepCopyObject() runtime.Object {
	return &Object{Unstructured: *o.DeepCopy()}
}

// GetConditions returns status.conditions, none if they are not of the standard
// form.
func (o *Object) GetConditions() []metav1.Condition {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	var conditions []metav1.Condition
	for _, item := range list {
		var condition metav1.Condition
		if fields, ok := item.(map[string]any); ok &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &condition) == nil {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// SetConditions replaces status.conditions.
func (o *Object) SetConditions(conditions []metav1.Condition) {
	list := make([]any, 0, len(conditions))
	for i := range conditions {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&conditions[i])
		if err != nil {
			panic(err) // a struct of strings and a time always converts
		}
		list = append(list, fields)
	}
	if err := unstructured.SetNestedSlice(o.Object, list, "status", "conditions"); err != nil {
		// status is no object: nobody could have read conditions from it.
		o.Object["status"] = map[string]any{"conditions": list}
	}
}

// Trim removes from an object all that holding it does not need: what is left
// is metadata, the field that holds it, and conditions. Of the managed fields it
// leaves what manager has applied. The annotation heldBy goes as well unless
// manager owns it: anybody who may write the object may have written it. An
// object may be trimmed more than once.
func Trim(obj *unstructured.Unstructured, manager, heldBy string) {
	a := Of(obj)
	if a == nil {
		return
	}
	trimmed := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"]}
	for _, path := range [][]string{a.lever(), {"status", "conditions"}} {
		if value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...); ok && err == nil {
			_ = unstructured.SetNestedField(trimmed, value, path...) // no parent is anything but an object
		}
	}
	obj.Object = trimmed

	ours := slices.DeleteFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != ""
	})
	obj.SetManagedFields(ours)

	annotations := obj.GetAnnotations()
	delete(annotations, lastAppliedAnnotation)
	if !owned(obj, "metadata", "annotations", heldBy) {
		delete(annotations, heldBy)
	}
	obj.SetAnnotations(annotations)
}

const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// owned returns whether the managed fields of a trimmed object have a field.
func owned(obj interface {
	GetManagedFields() []metav1.ManagedFieldsEntry
}, path ...string) bool {
	return slices.ContainsFunc(obj.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return owns(entry.FieldsV1, path)
	})
}

// owns returns whether a set of managed fields has the field of a path.
func owns(fields *metav1.FieldsV1, path []string) bool {
	if fields == nil {
		return false
	}
	raw := fields.GetRawBytes()
	for _, name := range path {
		var level map[string]json.RawMessage
		if json.Unmarshal(raw, &level) != nil {
			return false
		}
		next, ok := level["f:"+name]
		if !ok {
			return false
		}
		raw = next
	}
	return true
}
