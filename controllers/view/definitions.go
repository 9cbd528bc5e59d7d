package view

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/internal/crds"
	"github.com/fluxcd/gating-controller/internal/fields"
	"github.com/fluxcd/gating-controller/internal/target"
)

var (
	// ErrNotInstalled is returned for a supported kind that is not installed in the cluster.
	ErrNotInstalled = errors.New(msgNotInstalled)

	// ErrNotRead is returned for a kind whose objects are being read. An event will follow for each of them.
	ErrNotRead = errors.New(msgBeingRead)

	// errNotReadable is returned for a kind whose objects could not be read so far, for example because of missing permissions.
	errNotReadable = errors.New(msgNotReadable)
)

// UnsupportedError is returned for a kind of --suspend-kinds that cannot be held in this cluster. It contains the cause and the next
// step. Such a kind counts as not installed.
type UnsupportedError string

// Error implements error.
func (e UnsupportedError) Error() string { return string(e) }

// Is returns true for ErrNotInstalled.
func (UnsupportedError) Is(err error) bool { return errors.Is(ErrNotInstalled, err) }

// DefinitionFor returns the name of the CustomResourceDefinition of a kind.
func DefinitionFor(kind schema.GroupKind) string {
	plural, _ := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	return plural.GroupResource().String()
}

// KindForDefinition returns the supported kind of a CustomResourceDefinition.
func KindForDefinition(name string) (schema.GroupKind, bool) {
	for _, adapter := range target.All() {
		if kind := adapter.GroupKind(); DefinitionFor(kind) == name {
			return kind, true
		}
	}
	return schema.GroupKind{}, false
}

// AddedKindsFor returns the kinds of --suspend-kinds that have the group of a CustomResourceDefinition. The CRD may define one of
// them, because their plurals are unknown.
func AddedKindsFor(name string) []target.Kind {
	return slices.DeleteFunc(target.AddedKinds(), func(k target.Kind) bool { return k.IsBuiltIn() || !strings.HasSuffix(name, "."+k.Group) })
}

var (
	handled      fluxmeta.ReconcileRequestStatus
	handledField = fields.Name(&handled, &handled.LastHandledReconcileAt)
)

// definitionIn returns the facts that adapters need from a CRD.
func definitionIn(crd *apiextensionsv1.CustomResourceDefinition, version string) target.Definition {
	definition := target.Definition{Release: crd.Labels["app.kubernetes.io/version"], Spec: map[string]bool{}}
	if v := versionIn(crd, version); v != nil {
		for field := range v.Properties["spec"].Properties {
			definition.Spec[field] = true
		}
		_, definition.Handles = v.Properties["status"].Properties[handledField]
	}
	return definition
}

// versionIn returns the schema of a version in a CRD, nil if the CRD does not define the version.
func versionIn(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range crd.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// Definitions finds kinds in the cluster.
type Definitions struct {
	Mapper meta.RESTMapper
	reader client.Reader
	// Document returns the OpenAPI 3 document of a group and version.
	Document func(context.Context, schema.GroupVersion) ([]byte, error)

	mu sync.RWMutex
	// names stores the names of CRDs that cannot be derived from the kind.
	names map[schema.GroupKind]string
}

// found is a kind in the cluster.
type found struct {
	// installed is true if the kind is installed in the cluster. version is empty if the kind is not served yet.
	installed  bool
	version    string
	definition target.Definition
	// Fault is the reason why the kind cannot be held, empty if it can be held.
	Fault UnsupportedError
}

// find finds a kind in the cluster. It keeps the previous version as long as that version is served.
func (d *Definitions) find(ctx context.Context, kind schema.GroupKind, before string) (found, error) {
	added, ok := target.Added(kind)
	if ok && added.IsBuiltIn() {
		return d.FindBuiltIn(ctx, added)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := d.reader.Get(ctx, client.ObjectKey{Name: d.nameFor(kind)}, crd); err != nil {
		return found{}, client.IgnoreNotFound(err) // the kind is not installed
	}
	f := found{installed: true, version: crds.ServedVersion(crd, before)}
	f.definition = definitionIn(crd, f.version)
	if !ok || f.version == "" {
		return f, nil
	}
	raw, err := json.Marshal(versionIn(crd, f.version))
	if err != nil {
		return f, err
	}
	s, err := target.ReadSchema(raw)
	f.Fault = UnsupportedError(added.Fault(s, crd.Spec.Scope == apiextensionsv1.NamespaceScoped))
	f.definition.NoConditions = !s.AcceptsConditions() || !hasStatus(crd, f.version)
	return f, err
}

// hasStatus returns whether a version in a CRD has the status subresource.
func hasStatus(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
	})
}

// FindBuiltIn finds a built-in kind of Kubernetes, which has no CRD. Only Kubernetes controllers write the status of such a kind.
func (d *Definitions) FindBuiltIn(ctx context.Context, kind target.Kind) (found, error) {
	mapping, err := d.Mapper.RESTMapping(kind.GroupKind)
	if err != nil {
		if meta.IsNoMatchError(err) {
			err = nil
		}
		return found{}, err
	}
	f := found{installed: true, version: mapping.GroupVersionKind.Version, definition: target.Definition{NoConditions: true}}
	document, err := d.Document(ctx, mapping.GroupVersionKind.GroupVersion())
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) { // a retry would also fail, and must not block the other kinds
		f.Fault = UnsupportedError(fmt.Sprintf(msgSchemaUnread, kind.Kind, kind.Group, err))
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("reading the schema of kind %s: %w", kind.GroupKind, err)
	}
	s, err := target.FindSchema(document, mapping.GroupVersionKind)
	f.Fault = UnsupportedError(kind.Fault(s, mapping.Scope.Name() == meta.RESTScopeNameNamespace))
	return f, err
}

// nameFor returns the name of the CustomResourceDefinition of a kind. Kinds that are supported by default have a regular plural.
func (d *Definitions) nameFor(kind schema.GroupKind) string {
	if name, ok := d.named(kind); ok {
		return name
	}
	if _, added := target.Added(kind); !added {
		return DefinitionFor(kind)
	}
	mapping, err := d.Mapper.RESTMapping(kind)
	if err != nil {
		return DefinitionFor(kind) // KindFor finds the CRD once it exists
	}
	name := mapping.Resource.GroupResource().String()
	d.name(kind, name)
	return name
}

// KindFor returns the supported kind of a CustomResourceDefinition. It returns false if the CRD does not define a supported kind.
func (d *Definitions) KindFor(ctx context.Context, definition string) (schema.GroupKind, bool, error) {
	if kind, ok := KindForDefinition(definition); ok {
		return kind, true, nil
	}
	candidates := AddedKindsFor(definition)
	for _, added := range candidates { // the CRD may have been deleted
		if name, ok := d.named(added.GroupKind); ok && name == definition {
			return added.GroupKind, true, nil
		}
	}
	if len(candidates) == 0 {
		return schema.GroupKind{}, false, nil
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := d.reader.Get(ctx, client.ObjectKey{Name: definition}, crd); err != nil {
		return schema.GroupKind{}, false, client.IgnoreNotFound(err)
	}
	kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
	if _, ok := target.Added(kind); !ok {
		return schema.GroupKind{}, false, nil
	}
	d.name(kind, definition)
	return kind, true, nil
}

// name records the name of the CRD of a kind whose plural was unknown.
func (d *Definitions) name(kind schema.GroupKind, definition string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.names == nil {
		d.names = map[schema.GroupKind]string{}
	}
	d.names[kind] = definition
}

// named returns the recorded name of the CRD of a kind. It returns false if no name is recorded.
func (d *Definitions) named(kind schema.GroupKind) (string, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	name, ok := d.names[kind]
	return name, ok
}
