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

// Schema is what matters of the schema of a kind.
type Schema struct {
	root node
	// others are what it may refer to.
	others map[string]node
}

// node is a part of a schema of OpenAPI 3, or of a CustomResourceDefinition.
type node struct {
	Type       string          `json:"type"`
	Properties map[string]node `json:"properties"`
	Items      *node           `json:"items"`
	Required   []string        `json:"required"`
	Default    any             `json:"default"`
	Enum       []any           `json:"enum"`
	AllOf      []node          `json:"allOf"`
	Ref        string          `json:"$ref"`
	// Open means that it has fields that it does not name.
	Open  bool                      `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds []metav1.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

const refPrefix = "#/components/schemas/"

// ReadSchema reads the schema in a version of a CustomResourceDefinition, as JSON.
func ReadSchema(definition []byte) (Schema, error) {
	var s Schema
	err := json.Unmarshal(definition, &s.root)
	return s, err
}

// FindSchema finds the schema of a kind in what the API server publishes of its version in OpenAPI 3. Without
// one it is an error.
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
	return s, fmt.Errorf("the API server publishes no schema of %s", gvk)
}

// resolved returns a node without references.
func (s Schema) resolved(n node) node {
	if len(n.AllOf) == 1 && n.Type == "" { // beside a type it is a condition, and no reference
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

// find returns the node at a path, and the one that it is in. It is nil if the schema does not name it, and open says
// whether it may be there all the same.
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

// Fault says why objects of a kind with this schema cannot be held, empty if they can.
func (k Kind) Fault(s Schema, namespaced bool) string {
	field, in, open := s.find(k.path()...)
	name := fmt.Sprintf("kind %s of %s", k.Kind, k.Group)
	another := fmt.Sprintf("name the one that stops it, as in --suspend-kinds=%s/%s=spec.paused", k.Group, k.Kind)
	switch {
	case !namespaced:
		return name + " is not namespaced: gates hold only objects in namespaces"
	case field == nil && open:
		return fmt.Sprintf("the schema of %s does not say what %s is: gates hold only by a field that it says is boolean", name, k.Field)
	case field == nil:
		return fmt.Sprintf("%s has no boolean field %s: %s", name, k.Field, another)
	case field.Type != "boolean":
		return fmt.Sprintf("%s of %s has the type %s and is not a boolean field: %s", k.Field, name, cmp.Or(field.Type, "any"), another)
	case field.Default == true:
		return fmt.Sprintf("%s of %s is true by default: what is let go would stay stopped", k.Field, name)
	case field.Default == nil && slices.Contains(in.Required, k.path()[1]):
		return fmt.Sprintf("%s of %s is required and has no default: gates let go by taking the field away", k.Field, name)
	}
	return ""
}

// conditionFields are those of a condition that we write.
var conditionFields = []string{"type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"}

// AcceptsConditions returns whether objects with this schema have a place for conditions that keeps what we write.
func (s Schema) AcceptsConditions() bool {
	list, _, _ := s.find(conditionsPath...)
	if list == nil || list.Type != "array" || list.Items == nil {
		return false
	}
	condition := s.resolved(*list.Items)
	for _, name := range conditionFields[:5] { // not all kinds have the generation
		field := s.resolved(condition.Properties[name])
		if field.Type != "string" && !condition.Open || name != "status" && len(field.Enum) > 0 {
			return false
		}
	}
	others := slices.DeleteFunc(slices.Clone(condition.Required), func(name string) bool { return slices.Contains(conditionFields, name) })
	return condition.Type == "object" && len(others) == 0
}
