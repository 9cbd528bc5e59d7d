package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// apiPage is docs/reference/api.md, which crd-ref-docs writes with tests/tools/apidocs/page.tpl.
type apiPage struct {
	text string
	// rows has the table rows of fields, by the name of the field.
	rows   map[string][]string
	fields int
}

var unescaped = strings.NewReplacer(`\|`, "|", `\*`, "*", `\_`, "_")

func TestAPIPageHasAllFieldsWithDefaultsAndBounds(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "docs", "reference", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	p := &apiPage{text: unescaped.Replace(string(content)), rows: map[string][]string{}}
	for line := range strings.Lines(p.text) {
		if name, _, ok := strings.Cut(strings.TrimPrefix(line, "| `"), "` | "); ok && strings.HasPrefix(line, "| `") {
			p.rows[name] = append(p.rows[name], line)
		}
	}
	for kind, crd := range definitions(t) {
		if crd.Spec.Group != "gating.toolkit.fluxcd.io" {
			continue // internal kind
		}
		if row := fmt.Sprintf("\n| [%s](#%s) | `%s` | [", kind, strings.ToLower(kind), crd.Spec.Names.ShortNames[0]); !strings.Contains(p.text, row) {
			t.Errorf("the page has no row %q", row)
		}
		schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		p.check(t, schema.Properties["spec"], "spec")
		p.check(t, schema.Properties["status"], "status")
	}
	if p.fields < 150 {
		t.Errorf("only %d fields", p.fields)
	}
}

// check fails unless each field of an object has a row with its default and bounds, and the page has the messages of all rules.
func (p *apiPage) check(t *testing.T, object apiextensionsv1.JSONSchemaProps, path string) {
	t.Helper()
	for name, field := range object.Properties {
		if _, isCondition := object.Properties["observedGeneration"]; isCondition && object.Properties["type"].MaxLength != nil {
			return // a type of Kubernetes
		}
		p.fields++
		want := bounds(field)
		if slices.Contains(object.Required, name) && strings.HasPrefix(path, "spec") {
			want = append(want, "| required |")
		}
		if !slices.ContainsFunc(p.rows[name], func(row string) bool {
			return !slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(row, part) })
		}) {
			t.Errorf("no row of %s.%s has %q", path, name, want)
		}
		for field.Items != nil {
			field = *field.Items.Schema
		}
		p.check(t, field, path+"."+name)
	}
	for _, rule := range object.XValidations {
		if !strings.Contains(p.text, rule.Message) {
			t.Errorf("%s: the page lacks %q", path, rule.Message)
		}
	}
}

// bounds returns the cells in the row of a field, without its description.
func bounds(field apiextensionsv1.JSONSchemaProps) (all []string) {
	if field.Default != nil {
		all = append(all, "`"+strings.Trim(string(field.Default.Raw), `"`)+"`")
	}
	for name, value := range map[string]*int64{
		"MinLength": field.MinLength, "MaxLength": field.MaxLength, "MinItems": field.MinItems, "MaxItems": field.MaxItems, "MaxProperties": field.MaxProperties,
	} {
		if value != nil {
			all = append(all, fmt.Sprintf("%s: %d", name, *value))
		}
	}
	for name, value := range map[string]*float64{"Minimum": field.Minimum, "Maximum": field.Maximum} {
		if value != nil {
			all = append(all, fmt.Sprintf("%s: %v", name, *value))
		}
	}
	return all
}
