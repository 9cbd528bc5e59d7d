package gate

import (
	"fmt"
	"slices"

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
