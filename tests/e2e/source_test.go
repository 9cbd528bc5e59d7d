package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestGatedSourceHoldsRevisionsWhileDriftIsCorrected(t *testing.T) {
	w := newWorld(t)
	registry := harness.StartRegistry()
	t.Cleanup(registry.Stop)
	push := func(revision string) {
		w.Must(registry.Push("app", "latest", map[string]string{"app.yaml": w.configMap(revision)}))
	}
	push("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", w.Key("app"))
	source.Object["spec"] = map[string]any{
		"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"},
	}
	w.Create(source)
	app := w.kustomization("app", "OCIRepository", "app")
	w.arrives("v1")

	w.ClosedGate("freeze", v1alpha1.TargetReference{Kind: "OCIRepository", Name: "*"})
	w.suspend(source, true)
	push("v2")
	w.reconcileNow(source)
	w.stays("v1")

	drift := client.RawPatch(types.MergePatchType, []byte(`{"data":{"revision":"drifted"}}`))
	config := &corev1.ConfigMap{}
	config.Namespace, config.Name = w.Namespace, "app"
	w.Must(w.Client.Patch(w.Context(), config, drift))
	w.reconcileNow(app)
	w.arrives("v1")

	w.request("open", "freeze")
	w.suspend(source, false)
	w.reconcileNow(source)
	w.arrives("v2")
}
