package explain

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// waveNote describes the wave of an object that Gate g releases in waves, and the progress of the release.
func waveNote(g verdict.Gate, r verdict.Ruling) string {
	own := verdict.WaveOf(g.Object, &r.Object.Unstructured)
	text := fmt.Sprintf("It is in wave %s of gate %s. %s.", own, g.Name, WaveOf(g.Object))
	if stop := meta.FindStatusCondition(g.Object.Status.Conditions, v1alpha1.ReleaseStoppedCondition); stop != nil {
		text += " The release has stopped: " + stop.Message
	}
	return text
}

// WaveOf describes the progress of the current wave, without a full stop.
func WaveOf(g *v1alpha1.Gate) string {
	w := g.Status.Release.Waves
	text := fmt.Sprintf("Wave %s is being released, %d of %d targets are ready", w.Current, w.Ready, w.Total)
	waves := g.Spec.Release.Waves
	for i := range waves {
		if soak := waves[i].Soak; waves[i].Name == w.Current && soak != nil && w.ReadySince != nil {
			text += ", and the next wave starts at " + w.ReadySince.Add(soak.Duration).UTC().Format(time.RFC3339)
		}
	}
	return text
}
