package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestAGatedSourceHoldsNewRevisionsBackWhileDriftIsCorrected(t *testing.T) {
	w := newWorld(t)
	registry := harness.StartRegistry()
	t.Cleanup(registry.Stop)
	push := func(revision string) {
		w.must(registry.Push("app", "latest", map[string]string{"app.yaml": w.configMap(revision)}))
	}
	push("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "OCIRepository", w.key("app"))
	source.Object["spec"] = map[string]any{
		"interval": "1h", "insecure": true, "url": registry.URL("app"), "ref": map[string]any{"tag": "latest"},
	}
	w.must(cluster.Client.Create(w.ctx, source))
	w.kustomization("app", "OCIRepository", "app")
	w.arrives("v1")

	w.closedGate("freeze", "OCIRepository", "*")
	w.suspend(source, true)
	push("v2")
	w.reconcileNow("ocirepository", "app")
	w.stays("v1")

	drift := client.RawPatch(types.MergePatchType, []byte(`{"data":{"revision":"drifted"}}`))
	config := &corev1.ConfigMap{}
	config.Namespace, config.Name = w.namespace, "app"
	w.must(cluster.Client.Patch(w.ctx, config, drift))
	w.reconcileNow("kustomization", "app")
	w.arrives("v1")

	w.request("open", "freeze")
	w.suspend(source, false)
	w.reconcileNow("ocirepository", "app")
	w.arrives("v2")
}
