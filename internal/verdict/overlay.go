package verdict

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// ForTarget returns the Gate that applies to one target: a copy with the state of the overlays that match the target, or g itself if no
// overlay matches.
func (s Scope) ForTarget(g *v1alpha1.Gate, obj *unstructured.Unstructured) *v1alpha1.Gate {
	var matching []*v1alpha1.Overlay
	for i := range g.Status.Overlays {
		o := &g.Status.Overlays[i]
		if slices.ContainsFunc(o.Targets, func(t v1alpha1.OverlayTarget) bool {
			ref := t.Reference()
			return s.Names(&ref, g.Namespace, obj)
		}) {
			matching = append(matching, o)
		}
	}
	return gate.WithOverlays(g, matching)
}
