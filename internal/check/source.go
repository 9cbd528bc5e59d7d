package check

import (
	"fmt"
	"slices"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// ControllerAppliers returns the Flux objects that install a controller.
func ControllerAppliers(controllers []Controller) (found []applier.Reference) {
	for _, c := range controllers {
		found = append(found, applier.Appliers(c.labels)...)
	}
	return found
}

// OwnSource finds Gates that hold their own applier, the applier of the controller, or the objects created by "flux bootstrap".
func OwnSource(gates []v1alpha1.Gate, known applier.Objects, installs []applier.Reference, scope verdict.Scope) (findings []Finding) {
	for i := range gates {
		g := &gates[i]
		own := known.Governed(g, applier.Appliers(g.Labels), scope)
		for _, r := range own {
			findings = append(findings, Finding{Error, gateName(g), fmt.Sprintf("it holds its own source %s: while it is closed, changes to it in Git are not applied, not even one that opens it", r), "apply it from another source, or remove " + r.String() + " from its targets"})
		}
		for _, r := range known.Governed(g, installs, scope) {
			findings = append(findings, Finding{Error, gateName(g), fmt.Sprintf("it holds %s, which installs the controller: while it is closed, the controller cannot be fixed from Git", r), "remove " + r.String() + " from its targets"})
		}
		for _, r := range known.Bootstrap() {
			if !slices.Contains(own, r) && scope.GovernsInReach(g, known[r]) {
				findings = append(findings, Finding{Warning, gateName(g), fmt.Sprintf("it holds %s, from which Flux applies this cluster: while it is closed, no commit arrives, not even one that opens a gate", r), "remove " + r.String() + " from its targets, for example by a label"})
			}
		}
	}
	return findings
}
