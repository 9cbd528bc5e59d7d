package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// maxSoak is the longest soak of a wave, as in the CRD.
const maxSoak = 168 * time.Hour

// waveErrors returns the errors of the selectors and soaks of a release. They leave its order and pace undefined.
func waveErrors(g *v1alpha1.Gate) (errs field.ErrorList) {
	if g.Spec.Release == nil {
		return nil
	}
	for i := range g.Spec.Release.Waves {
		w, at := &g.Spec.Release.Waves[i], field.NewPath("spec", "release", "waves").Index(i)
		errs = append(errs, selectorErrors(at, w.Selector())...)
		if w.Soak != nil && (w.Soak.Duration < 0 || w.Soak.Duration > maxSoak) {
			errs = append(errs, timetable.InvalidDuration(at.Child("soak"), *w.Soak, "must be from 0s to 168h (7 days)"))
		}
	}
	return errs
}
