package verdict

import (
	"math/bits"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// WavesOf returns the waves of a Gate that match an object, as a bit mask. The first wave is bit 0.
func WavesOf(g *v1alpha1.Gate, obj *unstructured.Unstructured) (matches uint16) {
	waves := g.Spec.Release.Waves
	for i := range waves[:min(len(waves), v1alpha1.MaxWaves)] {
		if Matches(waves[i].Selector(), obj.GetLabels()) {
			matches |= 1 << i
		}
	}
	return matches
}

// WaveOf returns the name of the wave of an object: the last one that matches, or v1alpha1.RestOfTargets.
func WaveOf(g *v1alpha1.Gate, obj *unstructured.Unstructured) string {
	if matches := WavesOf(g, obj); matches != 0 {
		return g.Spec.Release.Waves[bits.Len16(matches)-1].Name
	}
	return v1alpha1.RestOfTargets
}
