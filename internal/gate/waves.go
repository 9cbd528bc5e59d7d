package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxSoak is the longest soak of a wave, as in the CRD.
const maxSoak = 168 * time.Hour

// waves reports invalid selectors and soaks of a release: they leave its order and pace undefined.
func (c *compiler) waves(g *v1alpha1.Gate) {
	if g.Spec.Release == nil {
		return
	}
	for i := range g.Spec.Release.Waves {
		w, at := &g.Spec.Release.Waves[i], field.NewPath("spec", "release", "waves").Index(i)
		c.selector(at, w.Selector())
		if w.Soak != nil && (w.Soak.Duration < 0 || w.Soak.Duration > maxSoak) {
			c.add(invalidDuration(at.Child("soak"), *w.Soak, "must be from 0s to 168h (7 days)"))
		}
	}
}
