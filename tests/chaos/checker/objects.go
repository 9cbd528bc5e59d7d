package checker

import (
	"encoding/json"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	controller       = "gating-controller"
	heldByAnnotation = "gating.toolkit.fluxcd.io/heldBy"
	// suspendedByAnnotation names Gates while the controller holds an object, or else a user.
	suspendedByAnnotation = "fluxcd.controlplane.io/suspendedBy"
	gatesAnnotation       = "gating.toolkit.fluxcd.io/gates"
	certificateKind       = "Certificate"
)

// owners returns the field managers that own a field of spec, sorted.
func owners(obj *unstructured.Unstructured, field string) []string {
	var all []string
	for _, entry := range obj.GetManagedFields() {
		fields := struct {
			Spec map[string]any `json:"f:spec"`
		}{}
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if _, ok := fields.Spec["f:"+field]; ok {
			all = append(all, entry.Manager)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// owns returns whether the controller owns a field of spec.
func owns(obj *unstructured.Unstructured, field string) bool {
	_, set, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", field)
	return set && slices.Contains(owners(obj, field), controller)
}

func suspended(obj *unstructured.Unstructured) bool {
	value, _, _ := unstructured.NestedBool(obj.Object, "spec", "suspend")
	return value
}

// ours returns whether the controller holds an object.
func ours(obj *unstructured.Unstructured) bool {
	if obj.GetKind() == certificateKind {
		return owns(obj, "renewal")
	}
	return suspended(obj) && owns(obj, "suspend")
}

// claims returns which other managers suspend an object.
func claims(obj *unstructured.Unstructured) []string {
	if !suspended(obj) || obj.GetKind() == "Gate" {
		return nil
	}
	return slices.DeleteFunc(owners(obj, "suspend"), func(manager string) bool { return manager == controller })
}

// Held returns whether the controller holds an object.
func Held(obj *unstructured.Unstructured) bool { return ours(obj) }

// Claims returns which other managers suspend an object.
func Claims(obj *unstructured.Unstructured) []string { return claims(obj) }

// names returns the Gates in an annotation of an object, sorted.
func names(obj *unstructured.Unstructured, annotation string) []string {
	var all []string
	for name := range strings.SplitSeq(obj.GetAnnotations()[annotation], ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		if !strings.Contains(name, "/") {
			name = obj.GetNamespace() + "/" + name
		}
		all = append(all, name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// condition returns a condition of an object, nil if it has none.
func condition(obj *unstructured.Unstructured, kind string) *metav1.Condition {
	status := struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}{}
	content, err := json.Marshal(obj.Object)
	if err != nil || json.Unmarshal(content, &status) != nil {
		return nil
	}
	for i := range status.Status.Conditions {
		if status.Status.Conditions[i].Type == kind {
			return &status.Status.Conditions[i]
		}
	}
	return nil
}
