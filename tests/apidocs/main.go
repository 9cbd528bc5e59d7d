// apidocs writes docs/reference/api.md from the definitions of the kinds.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const introduction = `# API

<!-- Generated from the definitions of the kinds by "make generate". Do not edit it. -->

Every field of every kind in ` + "`gating.toolkit.fluxcd.io/v1alpha1`" + `, with its type, default and bounds. The pages of the kinds say how the
fields work together.

` + "`kubectl explain gate.spec.openPeriods`" + ` prints the same text in a terminal. [Stability](stability.md) says what may change.

| kind | short name | page |
|---|---|---|
`

// pages are the pages of the kinds, in the order of the reference.
var pages = []struct{ kind, page string }{
	{"Gate", "gates.md"}, {"GateException", "gateexceptions.md"}, {"GatedSource", "gatedsources.md"},
	{"GateReceiver", "gatereceivers.md"}, {"CalendarFeed", "calendarfeeds.md"},
	{"MachineCertificateRefresh", "../guides/node-certificates.md"},
}

func main() {
	text, err := page(".")
	if err == nil {
		err = os.WriteFile(filepath.Join("docs", "reference", "api.md"), []byte(text), 0o644) //nolint:gosec // documentation
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// page returns the page of the API, for the repository in a folder.
func page(root string) (string, error) {
	kinds, err := definitions(root)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(introduction)
	for _, p := range pages {
		crd, ok := kinds[p.kind]
		if !ok {
			return "", fmt.Errorf("there is no definition of %s", p.kind)
		}
		fmt.Fprintf(&text, "| [%s](#%s) | %s | [%s](%s) |\n", p.kind, strings.ToLower(p.kind), shortName(crd), p.page, p.page)
	}
	for _, p := range pages {
		describe(&text, kinds[p.kind], p.page)
		delete(kinds, p.kind)
	}
	for kind := range kinds {
		return "", fmt.Errorf("the list of pages lacks %s", kind)
	}
	return text.String(), nil
}

// definitions returns the definitions of the kinds, by kind.
func definitions(root string) (map[string]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	if err != nil {
		return nil, err
	}
	kinds := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range append(files, filepath.Join(root, "config", "machines", "crd.yaml")) {
		content, err := os.ReadFile(file) //nolint:gosec // a file of the repository
		if err != nil {
			return nil, err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		kinds[crd.Spec.Names.Kind] = crd
	}
	return kinds, nil
}

func shortName(crd *apiextensionsv1.CustomResourceDefinition) string {
	if len(crd.Spec.Names.ShortNames) == 0 {
		return ""
	}
	return "`" + strings.Join(crd.Spec.Names.ShortNames, "`, `") + "`"
}

// describe writes the section of a kind.
func describe(text *strings.Builder, crd *apiextensionsv1.CustomResourceDefinition, page string) {
	kind, version := crd.Spec.Names.Kind, crd.Spec.Versions[0]
	schema := version.Schema.OpenAPIV3Schema
	fmt.Fprintf(text, "\n## %s\n\n%s\n\n[%s](%s) is the page of this kind.\n", kind, paragraphs(schema.Description, "\n\n"), kind, page)
	if columns := columnsOf(version.AdditionalPrinterColumns); columns != "" {
		fmt.Fprintf(text, "\n`kubectl get %s` has the columns %s.\n", crd.Spec.Names.Plural, columns)
	}
	refused(text, schema.XValidations)
	for _, name := range []string{"spec", "status"} {
		if field, ok := schema.Properties[name]; ok {
			table(text, kind, name, &field)
		}
	}
}

func columnsOf(columns []apiextensionsv1.CustomResourceColumnDefinition) string {
	var names []string
	for _, c := range columns {
		name := "`" + strings.ToUpper(c.Name) + "`"
		if c.Priority > 0 {
			name += " (with `-o wide`)"
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// refused writes what the API server says of mistakes that no single field shows.
func refused(text *strings.Builder, rules apiextensionsv1.ValidationRules) {
	if len(rules) == 0 {
		return
	}
	text.WriteString("\nThe API server refuses mistakes with these messages:\n\n")
	for _, rule := range rules {
		fmt.Fprintf(text, "- %s\n", escaped(rule.Message))
	}
}

// table writes a table of the fields of an object, and those of the objects in it.
func table(text *strings.Builder, kind, path string, schema *apiextensionsv1.JSONSchemaProps) {
	fmt.Fprintf(text, "\n### %s %s\n", kind, path)
	if schema.Description != "" {
		fmt.Fprintf(text, "\n%s\n", paragraphs(schema.Description, "\n\n"))
	}
	text.WriteString("\n| field | type | default | bounds | |\n|---|---|---|---|---|\n")
	var below []string
	for _, name := range fields(schema) {
		field := schema.Properties[name]
		if object := objectOf(&field); object != nil {
			below = append(below, name)
		}
		fmt.Fprintf(text, "| `%s` | %s | %s | %s | %s |\n", name, typeOf(&field, kind, path+"."+name), defaultOf(schema, name), bounds(&field), paragraphs(field.Description, "<br>"))
	}
	refused(text, schema.XValidations)
	for _, name := range below {
		field := schema.Properties[name]
		object := *objectOf(&field)
		if field.Items == nil && field.AdditionalProperties == nil {
			object.Description = "" // it is in the row
		}
		table(text, kind, path+"."+name, &object)
	}
}

// fields returns the names of the fields of an object: required ones first, then by name.
func fields(schema *apiextensionsv1.JSONSchemaProps) []string {
	var names []string
	for name := range schema.Properties {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if isA, isB := slices.Contains(schema.Required, a), slices.Contains(schema.Required, b); isA != isB {
			if isA {
				return -1
			}
			return 1
		}
		return strings.Compare(a, b)
	})
	return names
}

// ofKubernetes are the objects whose fields Kubernetes documents, by their fields.
var ofKubernetes = map[string]string{
	"lastTransitionTime message observedGeneration reason status type": "[Condition](https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Condition)",
	"matchExpressions matchLabels":                                     "[label selector](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors)",
	"key operator values":                                              "[label selector requirement](https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors)",
}

// kubernetes returns how Kubernetes names an object, empty if it is one of ours.
func kubernetes(schema *apiextensionsv1.JSONSchemaProps) string {
	return ofKubernetes[strings.Join(slices.Sorted(maps.Keys(schema.Properties)), " ")]
}

// objectOf returns the object of ours that a field is, or has many of; nil if there is none.
func objectOf(field *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.JSONSchemaProps {
	object := field
	for {
		switch {
		case object.Items != nil:
			object = object.Items.Schema
		case object.AdditionalProperties != nil && object.AdditionalProperties.Schema != nil:
			object = object.AdditionalProperties.Schema
		case len(object.Properties) == 0 || kubernetes(object) != "":
			return nil
		default:
			return object
		}
	}
}

// typeOf returns the type of a field, with a link to the table of its fields.
func typeOf(field *apiextensionsv1.JSONSchemaProps, kind, path string) string {
	switch {
	case field.Items != nil:
		return "list of " + typeOf(field.Items.Schema, kind, path)
	case field.AdditionalProperties != nil && field.AdditionalProperties.Schema != nil:
		return "map of " + typeOf(field.AdditionalProperties.Schema, kind, path)
	case len(field.Enum) > 0:
		var values []string
		for _, value := range field.Enum {
			values = append(values, "`"+strings.Trim(string(value.Raw), `"`)+"`")
		}
		return strings.Join(values, ", ")
	case kubernetes(field) != "":
		return kubernetes(field)
	case len(field.Properties) > 0:
		anchor := strings.NewReplacer(" ", "-", ".", "").Replace(strings.ToLower(kind + " " + path))
		return "[object](#" + anchor + ")"
	case field.Format == "date-time":
		return "time"
	case slices.ContainsFunc(field.XValidations, func(r apiextensionsv1.ValidationRule) bool { return strings.Contains(r.Rule, "duration(self)") }):
		return "duration"
	}
	return field.Type
}

// defaultOf returns the default of a field, or that it is required.
func defaultOf(schema *apiextensionsv1.JSONSchemaProps, name string) string {
	field := schema.Properties[name]
	switch {
	case field.Default != nil:
		return "`" + strings.Trim(string(field.Default.Raw), `"`) + "`"
	case slices.Contains(schema.Required, name):
		return "required"
	}
	return ""
}

// bounds returns the bounds of a field, and what the API server says if its rules are broken.
func bounds(field *apiextensionsv1.JSONSchemaProps) string {
	all := slices.DeleteFunc([]string{
		between(number(field.Minimum), number(field.Maximum), ""),
		between(number(field.MinLength), number(field.MaxLength), " characters"),
		between(number(field.MinItems), number(field.MaxItems), " items"),
		between(number(field.MinProperties), number(field.MaxProperties), " entries"),
	}, func(bound string) bool { return bound == "" })
	if field.Pattern != "" {
		all = append(all, "`"+strings.ReplaceAll(field.Pattern, "|", `\|`)+"`")
	}
	for _, rule := range rulesOf(field) {
		all = append(all, escaped(rule.Message))
	}
	return strings.Join(all, "; ")
}

// rulesOf returns the rules of a field. Those of an object are below its own table.
func rulesOf(field *apiextensionsv1.JSONSchemaProps) apiextensionsv1.ValidationRules {
	switch object := objectOf(field); {
	case field.Items != nil && object == nil:
		return slices.Concat(field.XValidations, field.Items.Schema.XValidations)
	case field.Items == nil && object != nil:
		return nil
	}
	return field.XValidations
}

func number[T int64 | float64](value *T) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(*value)
}

func between(least, most, unit string) string {
	switch {
	case least == "" && most == "":
		return ""
	case least == "":
		return "at most " + most + unit
	case most == "":
		return "at least " + least + unit
	}
	return least + " to " + most + unit
}

// paragraphs returns a description in Markdown: each paragraph in one line.
func paragraphs(description, separator string) string {
	var all []string
	for _, paragraph := range strings.Split(strings.TrimSpace(description), "\n\n") {
		all = append(all, escaped(strings.Join(strings.Fields(paragraph), " ")))
	}
	return strings.Join(all, separator)
}

// escaped returns a text that Markdown shows as it is.
func escaped(text string) string {
	return strings.NewReplacer("|", `\|`, "*", `\*`, "<", "&lt;", "_", `\_`).Replace(text)
}
