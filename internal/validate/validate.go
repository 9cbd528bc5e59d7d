// Package validate checks manifests without a cluster, against the schemas and CEL rules of the CRDs, as the API server does, and against
// rules in code.
package validate

import (
	"context"
	"maps"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/suggest"
)

// Object returns all errors in a manifest of our API group, each with the path of its field. It ignores the status.
func Object(obj *unstructured.Unstructured) field.ErrorList {
	d, err := definitionFor(obj)
	if err != nil {
		return field.ErrorList{err}
	}
	content, failed := copyOf(obj)
	if failed != nil {
		return field.ErrorList{field.InternalError(nil, failed)}
	}
	delete(content, "status")
	if named := (&unstructured.Unstructured{Object: content}); named.GetName() == "" && named.GetGenerateName() != "" {
		named.SetName(named.GetGenerateName() + "00000") // the API server appends five characters
	}
	given, errs := runtime.DeepCopyJSON(content), d.unknown(content)
	if spec, ok := content["spec"]; ok {
		errs = append(errs, empty(field.NewPath("spec"), spec)...)
	}
	if len(errs) == 0 || errs[0].Field != "metadata" {
		errs = append(errs, metadataErrors(content)...)
	}
	errs = append(errs, d.schemaErrors(content)...)
	for _, e := range codeErrors(d.kind, content) {
		if !slices.ContainsFunc(errs, func(other *field.Error) bool { return related(other.Field, e.Field) }) {
			errs = append(errs, e)
		}
	}
	for _, e := range errs {
		reword(e, given)
	}
	return errs
}

// empty returns an error for each field without a value. The API server drops such fields. For example, an empty daysOfMonth would mean
// every day.
func empty(path *field.Path, value any) (errs field.ErrorList) {
	switch value := value.(type) {
	case nil:
		return field.ErrorList{field.Forbidden(path, "has no value, which is the same as if the field were omitted: set it or remove it")}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			errs = append(errs, empty(path.Child(name), value[name])...)
		}
	case []any:
		for i := range value {
			errs = append(errs, empty(path.Index(i), value[i])...)
		}
	}
	return errs
}

// copyOf returns the content of an object with numbers as the API server decodes them, because YAML decodes all numbers to floats.
func copyOf(obj *unstructured.Unstructured) (content map[string]any, err error) {
	data, err := json.Marshal(obj.Object)
	if err == nil {
		err = json.Unmarshal(data, &content)
	}
	return content, err
}

// definitionFor returns the definition of an object's kind.
func definitionFor(obj *unstructured.Unstructured) (*definition, *field.Error) {
	known, err := definitions()
	if err != nil {
		return nil, field.InternalError(nil, err)
	}
	compile, ok := known[obj.GetKind()]
	if !ok {
		cause := "is not a kind of " + v1alpha1.GroupVersion.Group + ": must be one of " + strings.Join(Kinds(), ", ")
		if meant := suggest.Closest(obj.GetKind(), Kinds()); meant != "" {
			cause = "is not a kind of " + v1alpha1.GroupVersion.Group + ", did you mean " + meant + "?"
		}
		return nil, field.Invalid(field.NewPath("kind"), obj.GetKind(), cause)
	}
	d, err := compile()
	if err != nil {
		return nil, field.InternalError(nil, err)
	}
	if version := obj.GroupVersionKind().Version; version != d.version {
		return nil, field.Invalid(field.NewPath("apiVersion"), obj.GetAPIVersion(), "must be "+v1alpha1.GroupVersion.Group+"/"+d.version)
	}
	return d, nil
}

// unknown removes unknown fields from an object and returns an error for each.
func (d *definition) unknown(content map[string]any) (errs field.ErrorList) {
	dropped, paths := objectmeta.CoerceWithOptions(nil, content, d.structural, true, objectmeta.CoerceOptions{DropInvalidFields: false, ReturnUnknownFieldPaths: true})
	if dropped != nil {
		errs = append(errs, dropped)
	}
	paths = append(paths, pruning.PruneWithOptions(content, d.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	slices.Sort(paths)
	for _, path := range paths {
		steps := stepsIn(path)
		cause := "unknown field"
		if siblings := d.fieldsAt(steps[:len(steps)-1]); len(siblings) > 0 {
			if meant := closest(steps[len(steps)-1], siblings); meant != "" {
				cause += ", did you mean " + meant + "?"
			} else if len(siblings) <= maxListed {
				cause += ", must be one of " + strings.Join(siblings, ", ")
			}
		}
		errs = append(errs, &field.Error{Type: field.ErrorTypeForbidden, Field: path, Detail: cause})
	}
	return errs
}

// closest returns the valid field that is most similar to name, or an empty string if none is similar. Fields that refer to objects end
// with Ref or Refs.
func closest(name string, fields []string) string {
	for _, suffix := range []string{"Refs", "Ref"} {
		if ref := strings.TrimSuffix(name, "s") + suffix; slices.Contains(fields, ref) {
			return ref
		}
	}
	return suggest.Closest(name, fields)
}

// metadataErrors returns the errors in the metadata.
func metadataErrors(content map[string]any) field.ErrorList {
	return metavalidation.ValidateObjectMetaAccessor(&unstructured.Unstructured{Object: content}, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
}

// schemaErrors returns the violations of the schema and its CEL rules. Unlike the API server, it evaluates the rules of valid fields even
// if other fields are invalid.
func (d *definition) schemaErrors(content map[string]any) (errs field.ErrorList) {
	defaulting.PruneNonNullableNullsWithoutDefaults(content, d.structural)
	defaulting.Default(content, d.structural)
	errs = append(errs, validation.ValidateCustomResource(nil, content, d.schema)...)
	errs = append(errs, objectmeta.Validate(context.Background(), nil, content, d.structural, false)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, d.structural, content)...)
	mistyped := map[string]bool{}
	for _, e := range errs {
		if e.Type == field.ErrorTypeTypeInvalid {
			mistyped[e.Field] = true
		}
	}
	errs = slices.DeleteFunc(errs, func(e *field.Error) bool {
		return mistyped[e.Field] && e.Type != field.ErrorTypeTypeInvalid || strings.HasPrefix(e.Detail, "Checked value must be of type ") // duplicate
	})
	var invalid []string
	for _, e := range errs {
		if blocks(e) {
			invalid = append(invalid, e.Field)
			remove(content, stepsIn(e.Field))
		}
	}
	failed, _ := d.rules.Validate(context.Background(), nil, d.structural, content, nil, celconfig.RuntimeCELCostBudget)
	for _, e := range failed {
		if e.Field == "<nil>" {
			e.Field = "" // a rule of the whole object
		}
		if !slices.ContainsFunc(invalid, func(path string) bool { return related(path, e.Field) }) {
			errs = append(errs, e)
		}
	}
	return errs
}

// blocks returns whether an error prevents the API server from evaluating CEL rules.
func blocks(e *field.Error) bool {
	return slices.Contains([]field.ErrorType{field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid, field.ErrorTypeNotSupported}, e.Type)
}

// related returns whether one of two paths contains the other.
func related(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && (rest == "" || a == "" || rest[0] == '.' || rest[0] == '[')
}
