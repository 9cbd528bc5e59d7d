package target

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schema holds the parts of the schema of a kind that the checks in this package need.
type Schema struct {
	root node
	// others holds the schemas that root may refer to, by name.
	others map[string]node
}

// node is a part of a schema in OpenAPI 3 or in a CustomResourceDefinition.
type node struct {
	Type       string          `json:"type"`
	Properties map[string]node `json:"properties"`
	Items      *node           `json:"items"`
	Required   []string        `json:"required"`
	Default    any             `json:"default"`
	Enum       []any           `json:"enum"`
	AllOf      []node          `json:"allOf"`
	Ref        string          `json:"$ref"`
	// Open is true if the object may have fields that are not listed.
	Open  bool                      `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

const refPrefix = "#/components/schemas/"

// ReadSchema parses the schema in a version of a CustomResourceDefinition, as JSON.
func ReadSchema(definition []byte) (Schema, error) {
	var s Schema
	err := json.Unmarshal(definition, &s.root)
	return s, err
}

// FindSchema returns the schema of a kind in the OpenAPI 3 document of its version. It returns an error if there is none.
func FindSchema(document []byte, gvk schema.GroupVersionKind) (Schema, error) {
	var d struct {
		Components struct {
			Schemas map[string]node `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return Schema{}, err
	}
	s := Schema{others: d.Components.Schemas}
	for _, n := range s.others {
		if slices.Contains(n.Kinds, metav1.GroupVersionKind(gvk)) {
			s.root = n
			return s, nil
		}
	}
	return s, fmt.Errorf(msgNoSchema, gvk)
}

// resolved returns the node that n refers to, or n itself if it refers to none.
func (s Schema) resolved(n node) node {
	if len(n.AllOf) == 1 && n.Type == "" { // next to a type, it is a constraint and not a reference
		of := s.resolved(n.AllOf[0])
		if n.Default != nil {
			of.Default = n.Default
		}
		return of
	}
	if other, ok := s.others[strings.TrimPrefix(n.Ref, refPrefix)]; ok {
		return s.resolved(other)
	}
	return n
}

// find returns the node at a path, and its parent. If the schema does not have the node, found is nil, and open is true if objects may have
// the field anyway.
func (s Schema) find(path ...string) (found *node, in node, open bool) {
	n := s.resolved(s.root)
	for _, name := range path {
		in = n
		child, ok := n.Properties[name]
		if !ok {
			return nil, in, n.Open
		}
		n = s.resolved(child)
	}
	return &n, in, n.Open
}

// Fault returns why objects of a kind with this schema cannot be held, empty if they can be.
func (k Kind) Fault(s Schema, namespaced bool) string {
	field, in, open := s.find(k.path()...)
	name := fmt.Sprintf("kind %s of %s", k.Kind, k.Group)
	another := fmt.Sprintf(msgNameField, k.Group, k.Kind)
	switch {
	case !namespaced:
		return name + msgNotNamespaced
	case field == nil && open:
		return fmt.Sprintf(msgFieldUnknown, name, k.Field)
	case field == nil:
		return fmt.Sprintf(msgFieldMissing, name, k.Field, another)
	case field.Type != "boolean":
		return fmt.Sprintf(msgFieldType, k.Field, name, cmp.Or(field.Type, "any"), another)
	case field.Default == true:
		return fmt.Sprintf(msgFieldDefault, k.Field, name)
	case field.Default == nil && slices.Contains(in.Required, k.path()[1]):
		return fmt.Sprintf(msgFieldRequired, k.Field, name)
	}
	return ""
}

// conditionFields lists the fields of the conditions that the controller writes. The last one is optional.
var conditionFields = []string{"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}

// AcceptsConditions returns whether objects with this schema can store conditions with all fields that the controller writes.
func (s Schema) AcceptsConditions() bool {
	list, _, _ := s.find(conditionsPath...)
	if list == nil || list.Type != "array" || list.Items == nil {
		return false
	}
	condition := s.resolved(*list.Items)
	for _, name := range conditionFields[:5] { // observedGeneration is optional
		field := s.resolved(condition.Properties[name])
		if field.Type != "string" && !condition.Open || name != "status" && len(field.Enum) > 0 {
			return false
		}
	}
	others := slices.DeleteFunc(slices.Clone(condition.Required), func(name string) bool { return slices.Contains(conditionFields, name) })
	return condition.Type == "object" && len(others) == 0
}
