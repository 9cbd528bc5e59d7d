package validate

import (
	"embed"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/config"
)

// definition is the compiled schema of a version of a kind.
type definition struct {
	kind, version string
	structural    *structuralschema.Structural
	schema        validation.SchemaValidator
	rules         *cel.Validator
}

// definitions reads all embedded CRDs. A schema is compiled when its kind is used for the first time.
var definitions = sync.OnceValues(func() (map[string]func() (*definition, error), error) { return read(config.Definitions) })

// read returns the kinds of the CRDs in files, with functions that compile them.
func read(files embed.FS) (map[string]func() (*definition, error), error) {
	compilers := map[string]func() (*definition, error){}
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		kind := kindIn(data)
		compilers[kind] = sync.OnceValues(func() (*definition, error) { return compile(kind, data) })
		return nil
	})
	return compilers, err
}

// kindIn returns spec.names.kind of a CRD. It does not parse the file, because that takes some milliseconds and is needed only for the
// kinds in use.
func kindIn(crd []byte) string {
	for line := range strings.Lines(string(crd)) {
		if kind, ok := strings.CutPrefix(line, "    kind: "); ok {
			return strings.TrimSpace(kind)
		}
	}
	return ""
}

// compile returns the definition of the storage version of a CRD.
func compile(kind string, data []byte) (*definition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		return nil, err
	}
	version := crd.Spec.Versions[slices.IndexFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })]
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	schema, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &definition{kind, version.Name, structural, schema, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// Kinds returns the names of all kinds that can be validated.
func Kinds() []string {
	known, err := definitions()
	if err != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(known))
}
