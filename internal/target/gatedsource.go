package target

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatedsources,verbs=get;list;watch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatedsources/status,verbs=get;patch

var _ = register(gatedSource{GatedSource})

// GatedSource is the kind of our own whose objects move from revision to revision. Nothing is written on them to hold
// them: they ask their Gates before they move.
var GatedSource = schema.GroupKind{Group: ours, Kind: "GatedSource"}

// pinnable are the kinds of sources that GatedSources pin.
var pinnable = map[schema.GroupKind]bool{
	{Group: "source.toolkit.fluxcd.io", Kind: "GitRepository"}: true,
	{Group: "source.toolkit.fluxcd.io", Kind: "OCIRepository"}: true,
	{Group: "source.toolkit.fluxcd.io", Kind: "HelmChart"}:     true,
}

// IsPinnable returns whether GatedSources pin objects of a kind.
func IsPinnable(kind schema.GroupKind) bool { return pinnable[kind] }

// ContentOf has by kind the fields of the spec of a source that decide what an artifact has besides its revision, each with the field
// of the status in which source-controller notes what it was. Kinds are missing whose revision does not say what they have.
var ContentOf = map[string]map[string]string{
	"GitRepository": {"ignore": "observedIgnore", "recurseSubmodules": "observedRecurseSubmodules", "sparseCheckout": "observedSparseCheckout"},
	"OCIRepository": {"ignore": "observedIgnore", "layerSelector": "observedLayerSelector"},
}

// gatedSource is the adapter of GatedSources. It keeps them whole.
type gatedSource struct {
	groupKind schema.GroupKind
}

func (g gatedSource) GroupKind() schema.GroupKind { return g.groupKind }

func (gatedSource) levers() [][]string { return nil }

func (gatedSource) reads() [][]string { return [][]string{{"spec"}, {"status"}} }

func (gatedSource) revisions() [][]string { return [][]string{{"status", "gated", "revision"}} }

// Observe returns Held if a revision waits for Gates.
func (gatedSource) Observe(obj *Object, _ Identity) State {
	for _, c := range obj.GetConditions() {
		if c.Type == "Approved" && c.Status == "False" && heldBecause[c.Reason] {
			return Held
		}
	}
	return Free
}

// heldBecause are the reasons of the condition Approved of an object that Gates hold.
var heldBecause = map[string]bool{"GateClosed": true, "GateNotFound": true, "AccessDenied": true}

// Plan has no lever. Unless a revision waits, nothing is held.
func (gatedSource) Plan(obj *Object, _ State, _ Terms, _ time.Time) Plan {
	if _, waits, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "pending"); !waits {
		return Plan{Exempt: Idle}
	}
	return Plan{}
}

// Differs compares all that a look at it depends on, and what that makes of it.
func (gatedSource) Differs(before, after *Object) bool {
	return !reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) || !reflect.DeepEqual(before.Object["status"], after.Object["status"]) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
