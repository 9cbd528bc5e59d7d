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

// DeepCopyObject returns a copy of type *Object, unlike the method of Unstructured.
func (o *Object) DeepCopyObject() runtime.Object {
	return &Object{Unstructured: *o.DeepCopy()}
}

// GetConditions returns status.conditions without malformed ones.
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

// conditionOf converts a condition like runtime.DefaultUnstructuredConverter, but is ten times as fast. This matters because each
// reconciliation reads all conditions of a target. It returns false if the condition is malformed.
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

// field returns a field, or the zero value if it is not set. It sets ok to false if the field has a different type.
func field[T any](fields map[string]any, name string, ok *bool) T {
	value, is := fields[name].(T)
	*ok = *ok && (is || fields[name] == nil)
	return value
}

var conditionsPath = []string{"status", "conditions"}

// condition returns the condition with a type, nil if it is missing.
func (o *Object) condition(name string) *metav1.Condition {
	return meta.FindStatusCondition(o.GetConditions(), name)
}

// Lever returns the spec field that holds a trimmed object, empty if none does. If several fields are set, it returns the first one,
// because other clients own the rest.
func Lever(obj *Object) map[string]any {
	for _, path := range Of(&obj.Unstructured).levers() {
		if value, ok, err := unstructured.NestedFieldCopy(obj.Object, path...); ok && err == nil {
			return map[string]any{path[len(path)-1]: value}
		}
	}
	return map[string]any{}
}

// Revision returns the revision of a trimmed object, empty if unknown. For Flux kinds, this is the revision of the source.
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
			panic(err) // conditions can always be converted
		}
		list = append(list, fields)
	}
	if err := unstructured.SetNestedSlice(o.Object, list, conditionsPath...); err != nil {
		// status is not an object, so it has no conditions that could be lost
		o.Object["status"] = map[string]any{"conditions": list}
	}
}

// Trim removes everything from an object that is not needed to hold it. It keeps the metadata, the fields that hold the object, the fields
// that its adapter reads, and its revision. Of the managed fields, it keeps the owners of the fields and the annotations that record a hold
// or a pass. It removes the annotation HeldBy if it is not ours, because any user with write access to the object may have written or
// copied it. Trim is idempotent.
func Trim(obj *unstructured.Unstructured, us Identity) {
	a := Of(obj)
	if a == nil {
		return
	}
	trimmed := map[string]any{"apiVersion": obj.GetAPIVersion(), "kind": obj.GetKind(), "metadata": obj.Object["metadata"]}
	for _, path := range slices.Concat(a.levers(), a.reads(), a.revisions()) {
		if value, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...); ok && err == nil {
			_ = unstructured.SetNestedField(trimmed, value, path...) // each parent is an object
		}
	}
	obj.Object = trimmed
	if t, ok := a.(trimmer); ok {
		t.trim(obj)
	}
	if entries := reduce(managedFields(obj), append(a.levers(), us.heldByPath(), us.passPath(), suspendedByPath)...); len(entries) > 0 {
		_ = unstructured.SetNestedField(obj.Object, entries, managedFieldsPath...) // the entries are from this path
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

// trimmer is implemented by adapters that need only parts of a field in a list.
type trimmer interface {
	trim(obj *unstructured.Unstructured)
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

// IsPassOwnedByOthers returns whether another manager owns the record of passes of an object, but we do not.
func (us Identity) IsPassOwnedByOthers(obj *unstructured.Unstructured) bool {
	ours, others := us.owners(obj, us.passPath())
	return others && !ours
}

// owners returns whether we own a field of a trimmed object, and whether another manager does. If an admission policy has set the field,
// neither is true.
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

// managedFields returns metadata.managedFields without conversion, which would take longer than the rest of a reconciliation.
func managedFields(obj *unstructured.Unstructured) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, managedFieldsPath...)
	entries, _ := value.([]any)
	return entries
}

// reduce returns the managed fields restricted to the fields at the paths.
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

// owns returns whether an entry of the managed fields contains the field at a path.
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
