package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Audits reports which Gates have mode Audit, and how many targets they would hold.
func Audits(gates []v1alpha1.Gate) (findings []Finding) {
	for i := range gates {
		g := &gates[i]
		if !g.Audits() {
			continue
		}
		would := ""
		if counts := g.Status.Targets; counts != nil && meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.OpenedCondition) {
			would = fmt.Sprintf("; it is open, so it would hold none of its %d targets", counts.Total)
		} else if counts != nil {
			would = fmt.Sprintf("; it would hold %d of its %d targets", counts.WouldHold, counts.Total)
		}
		findings = append(findings, Finding{Note, gateName(g), "it has mode Audit and holds nothing" + would, "to enforce: " + ToEnforce(g)})
	}
	return findings
}

// ToEnforce returns the command that sets mode Enforce.
func ToEnforce(g *v1alpha1.Gate) string { return patch(g, `{"spec":{"mode":"Enforce"}}`) }

// Gates finds Gates that are not ready, suspended, or not reconciled.
func Gates(gates []v1alpha1.Gate) (findings []Finding) {
	for i := range gates {
		g := &gates[i]
		ready := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition)
		stalled := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.StalledCondition)
		switch {
		case g.Spec.Suspend:
			findings = append(findings, Finding{Warning, gateName(g), "it is suspended: its state does not change, and held targets stay held", patch(g, `{"spec":{"suspend":false}}`)})
		case stalled != nil && stalled.Status == metav1.ConditionTrue:
			findings = append(findings, Finding{Error, gateName(g), "it is stalled: " + stalled.Message, "correct its spec"})
		case g.Status.ObservedGeneration != g.Generation:
			findings = append(findings, Finding{Warning, gateName(g), fmt.Sprintf("the controller has not reconciled generation %d of it, the last one was %d", g.Generation, g.Status.ObservedGeneration), "check that a controller runs that watches this namespace"})
		case ready != nil && ready.Status == metav1.ConditionFalse && ready.Reason != v1alpha1.TimeUnknownReason:
			findings = append(findings, Finding{Error, gateName(g), "it is not ready: " + ready.Message, fmt.Sprintf("kubectl gate status -n %s %s", g.Namespace, g.Name)})
		}
	}
	return findings
}

func patch(g *v1alpha1.Gate, content string) string {
	return fmt.Sprintf("kubectl -n %s patch gate/%s --type=merge -p '%s'", g.Namespace, g.Name, content)
}
