package cli

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestWhoClosesWhatWouldHoldTooMuchIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Kustomization("a"))
	w.Create(w.Kustomization("b"))
	w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateOpened, MaxTargets: ptr.To(int32(1)), Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}},
	})
	w.Decided(w.ReadGate("production"))
	const numbers = "it governs 2 targets, and spec.maxTargets allows 1"
	for _, args := range []string{"close production", "close production --wait", "freeze production --for 1h --reason incident"} {
		w.expect(w.gate(strings.Fields(args)...), exitIncomplete, "", "error: "+w.Namespace+"/production: the close is refused, and counts once there are fewer targets: "+
			"Gate stays opened although it is due to close (")
	}
	for args, want := range map[string]string{
		"history production": "close refused", "list": "too many targets", "status production": numbers, "why kustomization/a": numbers,
		"check": "it is stalled: Gate stays opened",
	} {
		if got := w.gate(strings.Fields(args)...); !strings.Contains(strings.Join(strings.Fields(got.out), " "), want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	w.EditGate(w.ReadGate("production"), func(g *v1alpha1.Gate) { g.Spec.MaxTargets = ptr.To(int32(2)) })
	w.Eventually("the close counts", func() error {
		if g := w.ReadGate("production"); g.Status.Targets == nil || g.Status.Targets.Held != 2 {
			return fmt.Errorf("%+v", g.Status)
		}
		return nil
	})
}

func TestAGateThatGetsTheLabelsOfWhatItHoldsSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Kustomization("gates"))
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "gates"}}})
	w.Decided(g)
	w.Edit(g, func() {
		g.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "gates", "kustomize.toolkit.fluxcd.io/namespace": w.Namespace}
	})
	w.Eventually("the condition is there", func() error {
		for _, c := range w.ReadGate("production").Status.Conditions {
			if c.Type == v1alpha1.HoldsItsOwnSourceCondition {
				return nil
			}
		}
		return fmt.Errorf("%+v", w.ReadGate("production").Status.Conditions)
	})
}
