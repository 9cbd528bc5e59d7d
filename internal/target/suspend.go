package target

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fluxcd/gating-controller/internal/fields"
)

// suspendable is the adapter of kinds with a boolean field that suspends their objects, such as spec.suspend of Flux kinds.
type suspendable struct {
	groupKind schema.GroupKind
	field     []string
	revision  [][]string
}

// IsSuspended implements Suspender.
func (s suspendable) IsSuspended(obj *Object) bool {
	suspended, _, err := unstructured.NestedBool(obj.Object, s.field...)
	return err == nil && suspended
}

// suspend returns the adapter of a kind with a boolean field that suspends its objects. field is the address of that field in obj, which
// fields.New returned. revisions are the addresses of fields with the revision. The first one that is set counts.
func suspend(version schema.GroupVersion, kind string, obj, field any, revisions ...any) suspendable {
	return suspendable{version.WithKind(kind).GroupKind(), fields.Path(obj, field), fields.Paths(obj, revisions...)}
}

func (s suspendable) GroupKind() schema.GroupKind { return s.groupKind }

func (s suspendable) levers() [][]string { return [][]string{s.field} }

// reads implements Adapter. For kinds that GatedSources pin, it returns the whole spec.
func (s suspendable) reads() [][]string {
	paths := slices.Concat(passPaths, [][]string{conditionsPath, ObservedGenerationPath})
	switch {
	case pinnable[s.groupKind]:
		for _, c := range ContentOf[s.groupKind.Kind] {
			paths = append(paths, c.Observed)
		}
		return append(paths, []string{"spec"})
	case isFlux(s.groupKind):
		return append(paths, dependsOnPath)
	}
	return paths
}

func (s suspendable) revisions() [][]string { return s.revision }

func (s suspendable) Observe(obj *Object, us Identity) State {
	if !s.IsSuspended(obj) {
		return Free
	}
	_, named := obj.GetAnnotations()[us.HeldBy]
	ours, others := us.owners(&obj.Unstructured, s.field)
	nameOurs, _ := us.owners(&obj.Unstructured, us.heldByPath())
	switch {
	case ours && (nameOurs || !named):
		return Held
	case named && !nameOurs:
		return Locked
	case named && !others:
		return Overridden
	}
	return SuspendedByOthers
}

func (s suspendable) Plan(*Object, State, Terms, time.Time) Plan {
	return Plan{Lever: map[string]any{s.field[len(s.field)-1]: true}}
}

func (suspendable) Differs(_, _ *Object) bool { return false }
