package repository

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// explainWidth is the maximum length of a line in a description. kubectl explain wraps longer ones and keeps the existing line breaks, so
// that every other line would have one word.
const explainWidth = 76

// TestAllFieldsAreDescribed checks the output of kubectl explain, and the messages of rules.
func TestAllFieldsAreDescribed(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	fields := 0
	for _, file := range append(files, filepath.Join(root, "config", "lock", "crd.yaml"), filepath.Join(root, "config", "machines", "crd.yaml")) {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			fields += described(t, strings.ToLower(crd.Spec.Names.Kind), *version.Schema.OpenAPIV3Schema)
		}
	}
	if fields < 150 {
		t.Errorf("%d fields only", fields)
	}
}

// described checks a schema and its fields, and returns the number of fields. It ignores fields of Kubernetes itself, such as those of
// label selectors.
func described(t *testing.T, path string, schema apiextensionsv1.JSONSchemaProps) int {
	t.Helper()
	checkText(t, path, schema.Description)
	for line := range strings.Lines(schema.Description) {
		if line = strings.TrimSpace(line); len(line) > explainWidth && strings.Contains(line, " ") {
			t.Errorf("%s: kubectl explain breaks this line in two, wrap it after %d characters: %s", path, explainWidth, line)
		}
	}
	for _, rule := range schema.XValidations {
		checkText(t, path+": message", rule.Message)
	}
	if strings.HasSuffix(path, "elector") || strings.HasSuffix(path, ".matchExpressions") { // Kubernetes defines the fields below
		return 1
	}
	fields := 1
	for name, field := range schema.Properties {
		if root := !strings.Contains(path, "."); root && slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) || name == "conditions" {
			continue
		}
		fields += described(t, path+"."+name, field)
	}
	// An item is described by its list, unless it has fields.
	for _, items := range []*apiextensionsv1.JSONSchemaProps{itemOf(schema.Items), valueOf(schema.AdditionalProperties)} {
		if items != nil && len(items.Properties) > 0 {
			fields += described(t, path, *items)
		}
	}
	return fields
}

func checkText(t *testing.T, path, text string) {
	t.Helper()
	words := strings.Join(strings.Fields(text), " ")
	if words == "" {
		t.Errorf("%s has no description", path)
	}
}

func itemOf(items *apiextensionsv1.JSONSchemaPropsOrArray) *apiextensionsv1.JSONSchemaProps {
	if items == nil {
		return nil
	}
	return items.Schema
}

func valueOf(values *apiextensionsv1.JSONSchemaPropsOrBool) *apiextensionsv1.JSONSchemaProps {
	if values == nil {
		return nil
	}
	return values.Schema
}
