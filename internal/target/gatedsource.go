package target

import (
	"maps"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/fluxcd/gating-controller/api"
	"github.com/fluxcd/gating-controller/internal/fields"
)

// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatedsources,verbs=get;list;watch
// +kubebuilder:rbac:groups=gating.toolkit.fluxcd.io,resources=gatedsources/status,verbs=get;patch

var _ = register(gatedSource{groupKind: GatedSource})

// GatedSource is the group and kind of GatedSources, which move from revision to revision. They are held without a write, because their
// reconciler checks the Gates before it moves the pin.
var GatedSource = schema.GroupKind{Group: api.Group, Kind: "GatedSource"}

// pinnable contains the kinds of sources that GatedSources can pin.
var pinnable = map[schema.GroupKind]bool{
	{Group: sourcev1.GroupVersion.Group, Kind: sourcev1.GitRepositoryKind}: true,
	{Group: sourcev1.GroupVersion.Group, Kind: sourcev1.OCIRepositoryKind}: true,
	{Group: sourcev1.GroupVersion.Group, Kind: sourcev1.HelmChartKind}:     true,
}

// Content is a spec field of a source that, together with the revision, determines the content of the artifact. Observed is the status
// field in which source-controller records its value.
type Content struct{ Spec, Observed []string }

// ContentOf lists these fields by kind. Kinds whose revision does not identify the content, such as HelmChart, are missing.
var ContentOf = map[string][]Content{
	sourcev1.GitRepositoryKind: {
		content(gitRepository, &gitRepository.Spec.Ignore, &gitRepository.Status.ObservedIgnore),
		content(gitRepository, &gitRepository.Spec.RecurseSubmodules, &gitRepository.Status.ObservedRecurseSubmodules),
		content(gitRepository, &gitRepository.Spec.SparseCheckout, &gitRepository.Status.ObservedSparseCheckout),
	},
	sourcev1.OCIRepositoryKind: {
		content(ociRepository, &ociRepository.Spec.Ignore, &ociRepository.Status.ObservedIgnore),
		content(ociRepository, &ociRepository.Spec.LayerSelector, &ociRepository.Status.ObservedLayerSelector),
	},
}

func content(obj, spec, observed any) Content {
	return Content{fields.Path(obj, spec), fields.Path(obj, observed)}
}

// gatedSource is the adapter of GatedSources. Trimmed GatedSources keep the whole spec and status.
type gatedSource struct {
	follower
	groupKind schema.GroupKind
}

func (g gatedSource) GroupKind() schema.GroupKind { return g.groupKind }

// CanPin implements Pinner.
func (gatedSource) CanPin(source schema.GroupKind) bool { return pinnable[source] }

func (gatedSource) levers() [][]string { return nil }

func (gatedSource) reads() [][]string { return [][]string{{"spec"}, {"status"}} }

func (gatedSource) revisions() [][]string { return [][]string{{"status", "pinned", "revision"}} }

// HasSucceeded implements Installer. The first promotion is the first success.
func (gatedSource) HasSucceeded(obj *Object) bool { return Revision(obj) != "" }

// Observe implements Adapter. A GatedSource is held if a revision waits for Gates.
func (gatedSource) Observe(obj *Object, _ Identity) State {
	for _, c := range obj.GetConditions() {
		if c.Type == "Approved" && c.Status == "False" && heldBecause[c.Reason] {
			return Held
		}
	}
	return Free
}

// heldBecause contains the reasons of the condition Approved for objects that Gates hold.
var heldBecause = map[string]bool{"GateClosed": true, "GateNotFound": true, "AccessDenied": true}

// Plan implements Adapter. It returns no lever. If no revision waits, the object is exempt.
func (gatedSource) Plan(obj *Object, _ State, _ Terms, _ time.Time) Plan {
	if _, waits, _ := unstructured.NestedFieldNoCopy(obj.Object, "status", "pending"); !waits {
		return Plan{Exempt: Idle}
	}
	return Plan{}
}

// Differs implements Adapter. It compares the inputs and the results of a reconciliation.
func (gatedSource) Differs(before, after *Object) bool {
	return !reflect.DeepEqual(before.Object["spec"], after.Object["spec"]) || !reflect.DeepEqual(before.Object["status"], after.Object["status"]) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}
