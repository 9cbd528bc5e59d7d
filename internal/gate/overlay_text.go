package gate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Overlaid describes how many targets of a Gate have the other state because of overlays, such as "2 of 40 open". It is empty if there are
// none.
func Overlaid(g *v1alpha1.Gate) string {
	other, word := v1alpha1.StateOpened, "open"
	if meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition) {
		other, word = v1alpha1.StateClosed, "closed"
	}
	counts := g.Status.Targets
	if counts == nil || counts.Overlaid == 0 || !slices.ContainsFunc(g.Status.Overlays, func(o v1alpha1.Overlay) bool { return o.State == other }) {
		return "" // the overlays have ended, but the targets have not been counted again
	}
	return fmt.Sprintf("%d of %d %s", counts.Overlaid, counts.Total, word)
}

// OverlayTargets lists the targets that an overlay selects, as Only does.
func OverlayTargets(o *v1alpha1.Overlay) string { return Only(references(o.Targets)) }

// references returns targets of overlays in the form of a spec.
func references(targets []v1alpha1.OverlayTarget) []v1alpha1.TargetReference {
	refs := make([]v1alpha1.TargetReference, len(targets))
	for i := range targets {
		refs[i] = targets[i].Reference()
	}
	return refs
}

// OverlayChanges returns the overlays whose states began or ended between two statuses of a Gate. A changed end does not count.
func OverlayChanges(before, after *v1alpha1.Gate) (started, ended []*v1alpha1.Overlay) {
	return onlyIn(after.Status.Overlays, before.Status.Overlays), onlyIn(before.Status.Overlays, after.Status.Overlays)
}

// onlyIn returns the overlays with a state that others do not contain.
func onlyIn(all, others []v1alpha1.Overlay) (only []*v1alpha1.Overlay) {
	for i := range all {
		o := &all[i]
		if o.State != "" && !slices.ContainsFunc(others, func(other v1alpha1.Overlay) bool {
			return other.State == o.State && isSame(&other, o) && equality.Semantic.DeepEqual(other.Targets, o.Targets)
		}) {
			only = append(only, o)
		}
	}
	return only
}
