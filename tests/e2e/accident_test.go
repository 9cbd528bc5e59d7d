package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The real kustomize-controller sets the labels.
func TestGateHoldingItsKustomizationWarns(t *testing.T) {
	w := newWorld(t)
	manifest := fmt.Sprintf("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata:\n  name: production\n  namespace: %s\n"+
		"spec:\n  default: closed\n  targets:\n  - kind: Kustomization\n    name: '*'\n", w.Namespace)
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key("gates"), "v1", map[string]string{"gate.yaml": manifest}))
	gates := w.kustomization("gates", "ExternalArtifact", "gates")
	w.Opened("production", metav1.ConditionFalse)
	w.suspend(gates, true)
	w.Eventually("the condition names the Kustomization", func() error {
		for _, c := range w.ReadGate("production").Status.Conditions {
			if c.Type == v1alpha1.HoldsItsOwnSourceCondition && strings.Contains(c.Message, "Kustomization "+w.Namespace+"/gates, ") {
				return nil
			}
		}
		return fmt.Errorf("%+v", w.ReadGate("production").Status.Conditions)
	})
}
