package target

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is a target of any kind. Unlike the embedded unstructured object, it implements the conditions contract of the GitOps Toolkit.
type Object struct {
	unstructured.Unstructured
}

// DeepCopyObject keeps the type, unlike that of Unstructured.
func (o *Object) DeepCopyObject() runtime.Object {
	return &Object{Unstructured: *o.DeepCopy()}
}

// GetConditions returns status.conditions, none if they do not have the standard form.
func (o *Object) GetConditions() []metav1.Condition {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, conditionsPath...)
	list, _ := value.([]any)
	conditions := make([]metav1.Condition, 0, len(list))
	for _, item := range list {
		if condition, ok := conditionOf(item); ok {
			conditions = append(conditions, condition)
		}
	}
	return conditions
}

// conditionOf does the same as runtime.DefaultUnstructuredConverter, in a tenth of the time. Each reconciliation reads all conditions of a
// target.
func conditionOf(item any) (condition metav1.Condition, ok bool) {
	fields, ok := item.(map[string]any)
	condition = metav1.Condition{
		Type: field[string](fields, "type", &ok), Status: metav1.ConditionStatus(field[string](fields, "status", &ok)),
		Reason: field[string](fields, "reason", &ok), Message: field[string](fields, "message", &ok),
		ObservedGeneration: field[int64](fields, "observedGeneration", &ok),
	}
	if at := field[string](fields, "lastTransitionTime", &ok); at != "" {
		parsed, err := time.Parse(time.RFC3339, at)
		condition.LastTransitionTime = metav1.NewTime(parsed.Local())
		ok = ok && err == nil
	}
	return condition, ok
}

// field returns a field, the zero value if it is not set. If it has another type, it sets ok to false.
func field[T any](fields map[string]any, name string, ok *bool) T {
	value, is := fields[name].(T)
	*ok = *ok && (is || fields[name] == nil)
	return value
}

var conditionsPath = []string{"status", "conditions"}

// condition returns one of the conditions, nil if it is missing.
func (o *Object) condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(o.GetConditions(), name)
}

// Lever returns the spec fields that hold a trimmed object now: the first of its levers that is set. If another one is set too, it is not
// ours.
func Lever(obj *Object) map[string]any {
	for _, path := range Of(&obj.Unstructured).levers() {
		if value, ok, err := unstructured.NestedFieldCopy(obj.Object, path...); ok && err == nil {
			return map[string]any{path[len(path)-1]: value}
		}
	}
	return map[string]any{}
}

// Revision returns the revision of a trimmed object, empty if unknown. For the kinds of Flux, it is the revision of the source.
func Revision(obj *Object) string {
	for _, path := range Of(&obj.Unstructured).revisions() {
		switch value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); value := value.(type) {
		case string:
			if value != "" {
				return value
			}
		case int64:
			return strconv.FormatInt(value, 10)
		}
	}
	return ""
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
	if err := unstructured.SetNestedSlice(o.Object, list, conditionsPath...); err != nil {
		// status is not an object, so it had no conditions that could be lost.
		o.Object["status"] = map[string]any{"conditions": list}
	}
}

// Trim removes from an object everything that is not needed to hold it. It keeps the metadata, the fields that hold it, the fields that its
// adapter reads, and its revision. Of the managed fields it keeps the owners of the fields that hold the object, and of the annotations
// that record the hold. It removes such an annotation if it is not ours, because any user who may write the object may have written or
// copied it. Trim is idempotent.
func Trim(obj *unstructured.Unstructured, us Identity) {
	a := Of(obj)
	if a == nil {
		return
	}
	trimmed := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"]}
	for _, path := range slices.Concat(a.levers(), a.reads(), a.revisions()) {
		if value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...); ok && err == nil {
			_ = unstructured.SetNestedField(trimmed, value, path...) // every parent is an object
		}
	}
	obj.Object = trimmed
	if entries := reduce(managedFields(obj), append(a.levers(), us.heldByPath(), us.passPath())...); len(entries) > 0 {
		_ = unstructured.SetNestedField(obj.Object, entries, managedFieldsPath...) // they were read from there
	} else {
		unstructured.RemoveNestedField(obj.Object, managedFieldsPath...)
	}

	annotations := obj.GetAnnotations()
	delete(annotations, lastAppliedAnnotation)
	if ours, others := us.owners(obj, us.heldByPath()); others && !ours {
		delete(annotations, us.HeldBy)
	}
	obj.SetAnnotations(annotations)
}

const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// Identity identifies the fields that the controller owns.
type Identity struct {
	// Manager is our field manager. We own only the fields that it has applied.
	Manager string
	// HeldBy is the annotation with the names of the Gates that hold a target.
	HeldBy string
	// Pass is the annotation that records the last pass.
	Pass string
}

func (us Identity) heldByPath() []string { return []string{"metadata", "annotations", us.HeldBy} }

func (us Identity) passPath() []string { return []string{"metadata", "annotations", us.Pass} }

// IsPassOwnedByOthers returns whether another manager owns the record of passes of an object, and we do not.
func (us Identity) IsPassOwnedByOthers(obj *unstructured.Unstructured) bool {
	ours, others := us.owners(obj, us.passPath())
	return others && !ours
}

// owners returns whether we own a field of a trimmed object, and whether another manager does. A field that an admission policy has set has
// no owner.
func (us Identity) owners(obj *unstructured.Unstructured, path []string) (ours, others bool) {
	for _, item := range managedFields(obj) {
		entry, ok := item.(map[string]any)
		if !ok || !owns(entry, path) {
			continue
		}
		subresource, _ := entry["subresource"].(string)
		if entry["manager"] == us.Manager && entry["operation"] == string(metav1.ManagedFieldsOperationApply) && subresource == "" {
			ours = true
		} else {
			others = true
		}
	}
	return ours, others
}

var managedFieldsPath = []string{"metadata", "managedFields"}

// managedFields returns metadata.managedFields unconverted. Converting them costs more than everything else that is done with an object.
func managedFields(obj *unstructured.Unstructured) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, managedFieldsPath...)
	entries, _ := value.([]any)
	return entries
}

// reduce removes all managed fields except some paths.
func reduce(entries []any, paths ...[]string) []any {
	var reduced []any
	for _, item := range entries {
		entry, ok := item.(map[string]any)
		if !ok {
			continue
		}
		fields := map[string]any{}
		for _, path := range paths {
			if owns(entry, path) {
				names := make([]string, len(path))
				for i, name := range path {
					names[i] = ownedField(name)
				}
				_ = unstructured.SetNestedMap(fields, map[string]any{}, names...) // no path is a prefix of another
			}
		}
		if len(fields) > 0 {
			entry = maps.Clone(entry)
			entry[ownedFields] = fields
			reduced = append(reduced, entry)
		}
	}
	return reduced
}

// owns returns whether an entry of managed fields has the field at a path.
func owns(entry map[string]any, path []string) bool {
	fields, ok := entry[ownedFields].(map[string]any)
	for _, name := range path {
		if !ok {
			return false
		}
		fields, ok = fields[ownedField(name)].(map[string]any)
	}
	return ok
}

// ownedFields is the key of the fields in an entry of managed fields, see fieldsV1 of the
// Kubernetes API.
const ownedFields = "fieldsV1"

func ownedField(name string) string { return "f:" + name }
