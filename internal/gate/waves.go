package gate

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// maxSoak is the longest soak time of a wave, as in the CRD.
const maxSoak = 168 * time.Hour

// waveErrors returns the errors of the selectors and soak times of a release. If there are any, the order or the pace of the release is
// unknown.
func waveErrors(g *v1alpha1.Gate) (errs field.ErrorList) {
	if g.Spec.Release == nil {
		return nil
	}
	for i := range g.Spec.Release.Waves {
		w, at := &g.Spec.Release.Waves[i], field.NewPath("spec", "release", "waves").Index(i)
		errs = append(errs, timetable.ValidateSelector(at, w.Selector())...)
		if w.Soak != nil && (w.Soak.Duration < 0 || w.Soak.Duration > maxSoak) {
			errs = append(errs, timetable.InvalidDuration(at.Child("soak"), *w.Soak, msgSoak))
		}
	}
	return errs
}

// HasWaves returns whether a Gate releases its targets in waves.
func HasWaves(g *v1alpha1.Gate) bool { return g.Spec.Release != nil && len(g.Spec.Release.Waves) > 0 }

// WaveNames returns the names of the waves in order, followed by the name for targets that no wave matches.
func WaveNames(g *v1alpha1.Gate) []string {
	var names []string
	for i := range g.Spec.Release.Waves {
		names = append(names, g.Spec.Release.Waves[i].Name)
	}
	return append(names, v1alpha1.RestOfTargets)
}

// IsReleased returns whether all waves have been released since the Gate opened, according to its status.
func IsReleased(g *v1alpha1.Gate) bool {
	release, last := g.Status.Release, g.Status.LastTransition
	return release != nil && release.Waves != nil && last != nil && release.Waves.OpenedAt.Equal(&last.At) && release.Waves.Current == ""
}

// ReleasesInWaves returns whether a Gate is open and has waves that are not released yet.
func ReleasesInWaves(g *v1alpha1.Gate) bool {
	return HasWaves(g) && !IsReleased(g) && meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition)
}
