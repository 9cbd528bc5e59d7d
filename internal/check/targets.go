package check

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Targets finds Gates whose targets do not exist.
func Targets(gates []v1alpha1.Gate) (findings []Finding) {
	for i := range gates {
		g := &gates[i]
		if counts := g.Status.Targets; len(g.Spec.Targets) > 0 && counts != nil && counts.Total == 0 && !g.Spec.Suspend {
			findings = append(findings, Finding{Warning, gateName(g), "none of its targets exists: it holds nothing", "compare kind, name, namespace and labels in spec.targets with the objects in the cluster"})
		}
	}
	return findings
}

// Selectors finds Gates whose selectors match many more objects than the controller has counted. It skips Gates for which the controller
// has already counted the targets of the current spec.
func Selectors(gates []v1alpha1.Gate, objects []*unstructured.Unstructured, scope verdict.Scope) (findings []Finding) {
	for i := range gates {
		g, before := &gates[i], 0
		if counts := g.Status.Targets; counts != nil {
			before = int(counts.Total)
			if g.Status.ObservedGeneration == g.Generation && !g.Spec.Suspend {
				continue
			}
		}
		if w, many := scope.Widest(g, before, objects); many {
			findings = append(findings, Finding{Warning, gateName(g), w.Field() + " " + w.String(), verdict.WideAdvice})
		}
	}
	return findings
}
