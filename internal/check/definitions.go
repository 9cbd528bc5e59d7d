package check

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const installIt = "install gating-controller, or update it: kubectl apply --server-side -f install.yaml"

// ours lists the kinds of config/crd with their types.
var ours = []struct {
	kind string
	of   any
}{
	{v1alpha1.GateKind, v1alpha1.Gate{}},
	{v1alpha1.GateExceptionKind, v1alpha1.GateException{}},
	{v1alpha1.GateReceiverKind, v1alpha1.GateReceiver{}},
	{v1alpha1.GatedSourceKind, v1alpha1.GatedSource{}},
	{v1alpha1.CalendarFeedKind, v1alpha1.CalendarFeed{}},
}

// Definitions compares the CRDs in the cluster with the types of this plugin. document is the OpenAPI 3 document of our version, empty if
// the API server does not serve it.
func Definitions(document []byte) (findings []Finding) {
	var d struct {
		Components struct {
			Schemas map[string]map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if len(document) == 0 {
		return []Finding{{Error, "CustomResourceDefinitions", "the API server does not serve " + v1alpha1.GroupVersion.String() + ", which this plugin requires", installIt}}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return []Finding{{Warning, "CustomResourceDefinitions", "their OpenAPI document cannot be read: " + err.Error(), ""}}
	}
	for _, o := range ours {
		object := "CustomResourceDefinition " + strings.ToLower(o.kind) + "s." + v1alpha1.GroupVersion.Group
		schema := schemaOf(d.Components.Schemas, o.kind)
		if schema == nil {
			findings = append(findings, Finding{Error, object, "it is missing", installIt})
			continue
		}
		lacks, has := compare(reflect.TypeOf(o.of), schema, "")
		if len(lacks) > 0 {
			findings = append(findings, Finding{Error, object, "it is older than this plugin, and lacks " + some(lacks), installIt})
		}
		if len(has) > 0 {
			findings = append(findings, Finding{Warning, object, "it is newer than this plugin, which does not support " + some(has), "update the plugin"})
		}
	}
	return findings
}

// schemaOf returns the schema of a kind.
func schemaOf(schemas map[string]map[string]any, kind string) map[string]any {
	for _, schema := range schemas {
		kinds, _ := schema["x-kubernetes-group-version-kind"].([]any)
		for _, k := range kinds {
			if fields, ok := k.(map[string]any); ok && fields["kind"] == kind && fields["group"] == v1alpha1.GroupVersion.Group {
				return schema
			}
		}
	}
	return nil
}

// compare returns the fields of a type that are missing in a schema, and the fields of the schema that are missing in the type.
func compare(t reflect.Type, schema map[string]any, path string) (lacks, has []string) {
	switch t.Kind() {
	case reflect.Pointer:
		return compare(t.Elem(), schema, path)
	case reflect.Slice:
		items, _ := schema["items"].(map[string]any)
		return compare(t.Elem(), items, path)
	case reflect.Struct:
	default:
		return nil, nil
	}
	if !strings.HasSuffix(t.PkgPath(), "/api/v1alpha1") {
		return nil, nil // Kubernetes types do not change
	}
	properties, _ := schema["properties"].(map[string]any)
	known := map[string]bool{}
	for field, name := range fieldsOf(t) {
		known[name] = true
		property, ok := properties[name].(map[string]any)
		if !ok {
			lacks = append(lacks, path+name)
			continue
		}
		l, h := compare(field, property, path+name+".")
		lacks, has = append(lacks, l...), append(has, h...)
	}
	for name := range properties {
		if !known[name] {
			has = append(has, path+name)
		}
	}
	slices.Sort(lacks)
	slices.Sort(has)
	return lacks, has
}

// fieldsOf yields the JSON name and the type of each field of a struct.
func fieldsOf(t reflect.Type) func(yield func(reflect.Type, string) bool) {
	return func(yield func(reflect.Type, string) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "-" {
				continue
			}
			if name == "" && f.Anonymous {
				for inner, innerName := range fieldsOf(f.Type) {
					if !yield(inner, innerName) {
						return
					}
				}
				continue
			}
			if !yield(f.Type, name) {
				return
			}
		}
	}
}

const maxNamed = 5

// some joins up to maxNamed names, and adds how many more there are.
func some(names []string) string {
	if len(names) <= maxNamed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
