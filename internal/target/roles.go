package target

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"
)

// Suspender is the role of adapters whose objects have a boolean field that suspends them, such as spec.suspend. GateLocks lock only such
// objects.
type Suspender interface {
	// IsSuspended returns whether the field is set.
	IsSuspended(obj *Object) bool
}

// Installer is the role of adapters whose objects show whether they were ever reconciled successfully.
type Installer interface {
	// HasSucceeded returns whether a trimmed object was ever reconciled successfully. It returns true if that is unknown.
	HasSucceeded(obj *Object) bool
}

// Renewer is the role of adapters whose objects are renewed before they expire.
type Renewer interface {
	// Expiry returns when a trimmed object expires, zero if that is unknown.
	Expiry(obj *Object) time.Time
	// RenewalDue returns when a trimmed object would be renewed if nothing held it, zero if that is unknown.
	RenewalDue(obj *Object, state State) time.Time
}

// Activator is the role of adapters whose objects can issue a Secret that is activated later.
type Activator interface {
	// StagedSecret returns the name of the Secret with the issued certificate.
	StagedSecret(obj *Object) string
}

// Pinner is the role of adapters whose objects pin sources. The objects are held without a write, because their own reconciler checks the
// Gates before it moves a pin.
type Pinner interface {
	// CanPin returns whether the objects can pin sources of a kind.
	CanPin(source schema.GroupKind) bool
}

// Reporter is the role of adapters whose objects declare their conditions as a map by type, so that each client can apply its own. For
// other kinds, conditions are a list, which is patched with the resource version that was read.
type Reporter interface {
	// ReportsByApply returns whether server-side apply merges the conditions.
	ReportsByApply() bool
}

// Applier is the role of adapters whose objects apply or follow the revisions of a source.
type Applier interface {
	// Source returns a reference to the source, with its API version and namespace. It returns false if the object has no source.
	Source(obj *unstructured.Unstructured) (fluxmeta.NamespacedObjectKindReference, bool)
	// Applied returns the revision in effect, empty if there is none.
	Applied(obj *unstructured.Unstructured) string
	// Pending returns the revision of the source that is not applied yet, empty if there is none. known is false if the revision of the source
	// is unknown.
	Pending(obj, source *unstructured.Unstructured) (revision string, known bool)
}

// As returns the adapter of an object if it has the role. Otherwise it returns false.
func As[Role any](obj *unstructured.Unstructured) (Role, bool) {
	role, ok := Of(obj).(Role)
	return role, ok
}

// IsInitial returns whether a trimmed object has never been reconciled successfully. It returns false if that is unknown.
func IsInitial(obj *Object) bool {
	adapter, ok := As[Installer](&obj.Unstructured)
	return ok && !adapter.HasSucceeded(obj)
}

// Suspends returns whether an adapter has the role Suspender.
func Suspends(a Adapter) bool {
	_, ok := a.(Suspender)
	return ok
}

// Pins returns whether the adapter of a kind has the role Pinner.
func Pins(kind schema.GroupKind) bool {
	_, ok := registry.Load().adapters[kind].(Pinner)
	return ok
}
