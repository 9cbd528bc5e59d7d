package cli

import (
	"fmt"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestGateWithLabelsOfItsTargetsWarns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Kustomization("gates"))
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "gates"}}})
	w.Decided(g)
	w.Edit(g, func() {
		g.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "gates", "kustomize.toolkit.fluxcd.io/namespace": w.Namespace}
	})
	w.Eventually("the condition is set", func() error {
		for _, c := range w.ReadGate("production").Status.Conditions {
			if c.Type == v1alpha1.HoldsItsOwnSourceCondition {
				return nil
			}
		}
		return fmt.Errorf("%+v", w.ReadGate("production").Status.Conditions)
	})
}
