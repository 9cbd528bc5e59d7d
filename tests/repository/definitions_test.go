package repository

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// definitions returns the project's CRDs by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, pattern := range []string{"../../config/crd/bases/*.yaml", "../../config/*/crd.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal(content, crd); err != nil {
				t.Fatal(err)
			}
			all[crd.Spec.Names.Kind] = crd
		}
	}
	if len(all) < 7 {
		t.Fatalf("%d CRDs", len(all))
	}
	return all
}

// kustomize-controller must not replace variables such as ${name} in the descriptions.
func TestCRDsAreNotSubstituted(t *testing.T) {
	for kind, crd := range definitions(t) {
		if got := crd.Annotations["kustomize.toolkit.fluxcd.io/substitute"]; got != "disabled" {
			t.Errorf("%s: the annotation is %q", kind, got)
		}
	}
}

func TestKindsWithSuspendHaveSuspendedColumn(t *testing.T) {
	for kind, crd := range definitions(t) {
		for _, version := range crd.Spec.Versions {
			_, suspends := version.Schema.OpenAPIV3Schema.Properties["spec"].Properties["suspend"]
			column := apiextensionsv1.CustomResourceColumnDefinition{Name: "Suspended", Type: "boolean", Priority: 1, JSONPath: ".spec.suspend"}
			if has := slices.Contains(version.AdditionalPrinterColumns, column); has != suspends {
				t.Errorf("%s %s: spec.suspend %t, column %t", kind, version.Name, suspends, has)
			}
		}
	}
}
