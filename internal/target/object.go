package target

import (
	"encoding/json"

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
// leaves the entry of manager, and only if that owns the field that holds it:
// this is how Observe tells our holds from others.
func Trim(obj *unstructured.Unstructured, manager string) {
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

	annotations := obj.GetAnnotations()
	if _, ok := annotations[lastAppliedAnnotation]; ok {
		delete(annotations, lastAppliedAnnotation)
		obj.SetAnnotations(annotations)
	}
	var ours []metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Manager == manager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && owns(entry.FieldsV1, a.lever()) {
			entry.FieldsV1 = nil
			ours = append(ours, entry)
		}
	}
	obj.SetManagedFields(ours)
}

const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

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
