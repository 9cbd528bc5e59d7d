package check

import "github.com/fluxcd/gating-controller/api/v1alpha1"

// Targets finds Gates that govern nothing although they name something.
func Targets(gates []v1alpha1.Gate) (findings []Finding) {
	for i := range gates {
		g := &gates[i]
		if counts := g.Status.Targets; len(g.Spec.Targets) > 0 && counts != nil && counts.Total == 0 && !g.Spec.Suspend {
			findings = append(findings, Finding{Warning, gateName(g), "none of its targets exists: it holds nothing", "compare kind, name, namespace and labels in spec.targets with what is there"})
		}
	}
	return findings
}
