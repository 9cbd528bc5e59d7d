package controllers

import (
	"errors"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/target"
)

var (
	// ErrNotInstalled is returned for a supported kind that the cluster lacks.
	ErrNotInstalled = errors.New("is not installed")

	// errNotRead is returned while the objects of a kind are being read. The event of each of them is to come.
	errNotRead = errors.New("is being read")

	// ErrNotReadable is returned for a kind whose objects could not be read so
	// far, for lack of permissions say.
	ErrNotReadable = errors.New("cannot be read, see the log of the controller")
)

// definitionOf returns the name of the CustomResourceDefinition of a kind.
func definitionOf(kind schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return plural.GroupResource().String()
}

// kindOfCRD returns the supported kind of a CustomResourceDefinition.
func kindOfCRD(name string) (schema.GroupKind, bool) {
	for _, adapter := range target.All() {
		if kind := adapter.GroupKind(); definitionOf(kind) == name {
			return kind, true
		}
	}
	return schema.GroupKind{}, false
}

// definitionIn returns what adapters may ask of a definition.
func definitionIn(crd *apiextensionsv1.CustomResourceDefinition, version string) target.Definition {
	definition := target.Definition{Release: crd.Labels["app.kubernetes.io/version"], Spec: map[string]bool{}}
	for _, v := range crd.Spec.Versions {
		if v.Name == version && v.Schema != nil && v.Schema.OpenAPIV3Schema != nil {
			for field := range v.Schema.OpenAPIV3Schema.Properties["spec"].Properties {
				definition.Spec[field] = true
			}
		}
	}
	return definition
}

// servedVersion returns the version to watch: the one before if it is still
// served, else that of storage, else any. It is empty if none is served yet.
func servedVersion(crd *apiextensionsv1.CustomResourceDefinition, before string) string {
	if !slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	}) {
		return ""
	}
	version := ""
	for _, v := range crd.Spec.Versions {
		switch {
		case v.Served && v.Name == before:
			return v.Name
		case v.Served && (v.Storage || version == ""):
			version = v.Name
		}
	}
	return version
}
