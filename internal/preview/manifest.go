package preview

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// Read reads the manifests in a file, whose name must not be empty. It ignores objects of other kinds. It returns an error if the file
// cannot be read. Faults in the manifests are returned by Err.
func (s *Set) Read(file string, in io.Reader) error {
	reader := yaml.NewYAMLReader(bufio.NewReader(in))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if len(bytes.TrimSpace(document)) > 0 {
			s.document(file, document)
		}
	}
}

func (s *Set) document(file string, document []byte) {
	if texts := jsonTexts(document); len(texts) > 1 {
		for _, text := range texts {
			s.document(file, text)
		}
		return
	}
	decoded, err := decode(document)
	if err != nil {
		s.faults = append(s.faults, Fault{File: file, Cause: strings.ReplaceAll(err.Error(), "\n", " ")})
		return
	}
	content, ok := decoded.(map[string]any)
	if !ok {
		return
	}
	s.objects(file, &unstructured.Unstructured{Object: content})
}

// jsonTexts returns the JSON texts in a document, nil if the document is not JSON.
func jsonTexts(document []byte) (texts [][]byte) {
	if !yaml.IsJSONBuffer(document) {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	for {
		var text json.RawMessage
		if err := decoder.Decode(&text); errors.Is(err, io.EOF) {
			return texts
		} else if err != nil {
			return nil
		}
		texts = append(texts, text)
	}
}

// objects reads an object, or the items of a list. As in kubectl, an item without a kind has the kind of the list.
func (s *Set) objects(file string, obj *unstructured.Unstructured) {
	items, ok := obj.Object["items"].([]any)
	itemKind, isList := strings.CutSuffix(obj.GetKind(), "List")
	if !ok || !isList {
		s.object(file, obj)
		return
	}
	for _, item := range items {
		if fields, ok := item.(map[string]any); ok {
			of := &unstructured.Unstructured{Object: fields}
			if of.GetKind() == "" && of.GetAPIVersion() == "" && itemKind != "" {
				of.SetAPIVersion(obj.GetAPIVersion())
				of.SetKind(itemKind)
			}
			s.objects(file, of)
		}
	}
}

// decode parses a document in the same way as the API server. It tries JSON first, because YAML has no surrogate pairs, and then YAML.
func decode(document []byte) (decoded any, err error) {
	if yaml.IsJSONBuffer(document) {
		if twice, err := kjson.UnmarshalStrict(document, &decoded); err == nil {
			return decoded, errors.Join(twice...)
		}
	}
	decoded = nil
	return decoded, sigsyaml.UnmarshalStrict(document, &decoded)
}

func (s *Set) object(file string, obj *unstructured.Unstructured) {
	s.readAnnotations(file, obj)
	gvk := obj.GroupVersionKind()
	if gvk.Group == "" && gvk.Kind == "ConfigMap" {
		s.readConfigMap(file, obj)
		return
	}
	s.readTarget(obj)
	kind, known := kinds[gvk.Kind]
	if version := obj.GetAPIVersion(); known && (version == "" || version == api.Group) {
		s.faults = append(s.faults, Fault{File: file, Object: obj.GetName(), Field: "apiVersion", Cause: "must be " + v1alpha1.GroupVersion.String()})
		return
	}
	if gvk.Group != v1alpha1.GroupVersion.Group || !known && s.validate == nil {
		return
	}
	_, _, namespaceErr := unstructured.NestedString(obj.Object, "metadata", "namespace")
	if obj.GetNamespace() == "" && namespaceErr == nil {
		obj.SetNamespace(s.namespace)
	}
	name := cmp.Or(obj.GetNamespace(), s.namespace) + "/" + obj.GetName()
	fail := func(field, cause string) {
		s.faults = append(s.faults, Fault{File: file, Object: name, Field: field, Cause: cause})
	}
	other, again := s.files[key{gvk.Kind, name}]
	if again = again && obj.GetName() != ""; again && (!s.overlays || directory(file) == directory(other)) {
		fail("metadata.name", "is already defined in "+other)
		return
	}
	if !again {
		s.files[key{gvk.Kind, name}] = file
	}
	s.validated++
	if s.validate != nil {
		errs := s.validate(obj)
		for _, err := range errs {
			fail(err.Field, causeIn(err))
		}
		if len(errs) > 0 {
			return
		}
	}
	if again {
		s.overlaid = append(s.overlaid, Fault{File: file, Object: name, Cause: "is also defined in " + other + ": other warnings are given only for that one"})
		return
	}
	if known {
		s.add(kind, obj, fail)
	}
}

// add adds a manifest of a kind to the set. It calls fail for each fault in the manifest.
func (s *Set) add(kind kind, obj *unstructured.Unstructured, fail func(field, cause string)) {
	_, _, namespaceErr := unstructured.NestedString(obj.Object, "metadata", "namespace")
	switch gvk := obj.GroupVersionKind(); {
	case gvk.Version != v1alpha1.GroupVersion.Version:
		fail("apiVersion", fmt.Sprintf("%s is not supported, use %s", obj.GetAPIVersion(), v1alpha1.GroupVersion))
		return
	case namespaceErr != nil:
		fail("metadata.namespace", "must be a string, put it in quotes")
		return
	case obj.GetName() == "" && obj.GetGenerateName() != "" && s.validate != nil:
		obj.SetName(obj.GetGenerateName() + "00000") // as long as a name that the API server generates
	case obj.GetName() == "":
		fail("metadata.name", kind.noun+" needs a name")
		return
	case len(validation.IsDNS1123Subdomain(obj.GetName())) > 0, len(validation.IsDNS1123Label(obj.GetNamespace())) > 0:
		fail("metadata", fmt.Sprintf("no object can have the name %q in namespace %q", obj.GetName(), obj.GetNamespace()))
		return
	}

	data, err := json.Marshal(obj.Object)
	if err != nil {
		fail("", err.Error())
		return
	}
	if !kind.read(s, data, fail) {
		fail("", "a field has the wrong type, or an invalid time or duration: see kubectl gate validate")
	}
}

// directory returns the directory of a file, or the directory of the kustomization that file was built from.
func directory(file string) string {
	if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(file)) {
		return filepath.Dir(file)
	}
	return file
}

// readAnnotations adds the warnings about the annotations of a manifest of any kind.
func (s *Set) readAnnotations(file string, obj *unstructured.Unstructured) {
	if s.validate == nil {
		return
	}
	name := cmp.Or(obj.GetNamespace(), s.namespace) + "/" + obj.GetName()
	for _, p := range annotations.InManifest(obj.GetAnnotations()) {
		s.annotated = append(s.annotated, Fault{File: file, Object: name, Field: fmt.Sprintf("metadata.annotations[%s]", p.Key), Cause: p.Cause})
	}
}

// causeIn returns the text of an error without its field, and for an unknown field also without "Forbidden".
func causeIn(err *field.Error) string {
	if err.Type == field.ErrorTypeForbidden {
		return err.Detail
	}
	return err.ErrorBody()
}

// kind contains the functions that read the objects of a kind.
type kind struct {
	noun string
	// read adds an object to the set. It calls fail for each fault in the object, and returns false if the object cannot be decoded.
	read func(s *Set, data []byte, fail func(field, cause string)) bool
}

var kinds = map[string]kind{
	v1alpha1.GateKind: kindOf("a gate", gate.Validate,
		func(s *Set) *[]*v1alpha1.Gate { return &s.gates }),
	v1alpha1.GateExceptionKind: kindOf("an exception", timetable.ValidateException,
		func(s *Set) *[]*v1alpha1.GateException { return &s.exceptions }),
}

// kindOf returns the kind of type T. validate returns the errors of an object, and kept returns the list that the object is added to.
func kindOf[T any](noun string, validate func(*T) field.ErrorList, kept func(*Set) *[]*T) kind {
	return kind{
		noun: noun,
		read: func(s *Set, data []byte, fail func(field, cause string)) bool {
			obj := new(T)
			unknown, err := kjson.UnmarshalStrict(data, obj)
			if err != nil {
				return false
			}
			for _, err := range unknown {
				fail("", err.Error())
			}
			for _, err := range validate(obj) {
				fail(err.Field, err.ErrorBody())
			}
			list := kept(s)
			*list = append(*list, obj)
			return true
		},
	}
}
