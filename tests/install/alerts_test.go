package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// An Alert of Flux may refer to Gates once config/flux-alerts has changed its CRD.
func TestFluxAlertsAcceptGates(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	folder := t.TempDir()
	generate := exec.CommandContext(t.Context(), filepath.Join(harness.Tools(), "bin", "controller-gen"), "crd", "paths=github.com/fluxcd/notification-controller/api/...", "output:crd:dir="+folder)
	generate.Dir = harness.Root()
	if out, err := generate.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	documented := blocksFor(t, "docs/guides/notifications.md")[2]
	without, _, _ := strings.Cut(documented, "components:")
	w.Must(os.CopyFS(filepath.Join(folder, "flux-alerts"), os.DirFS(filepath.Join(harness.Root(), "config", "flux-alerts"))))
	w.Must(os.Rename(filepath.Join(folder, "notification.toolkit.fluxcd.io_alerts.yaml"), filepath.Join(folder, "gotk-components.yaml")))
	w.Must(os.Rename(filepath.Join(folder, "notification.toolkit.fluxcd.io_receivers.yaml"), filepath.Join(folder, "gotk-sync.yaml")))
	install := func(text string) {
		t.Helper()
		w.Must(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600))
		_, err := w.Kubectl(w.Context(), "apply", "--server-side", "-k", folder)
		w.Must(err)
	}
	w.Cleanup(func() { _, _ = w.Kubectl(context.WithoutCancel(w.Context()), "delete", "-k", folder) })
	alert := func(kind string) error {
		obj := harness.Object("notification.toolkit.fluxcd.io/v1beta3", "Alert", w.Key("gates"))
		obj.Object["spec"] = map[string]any{"providerRef": map[string]any{"name": "slack"}, "eventSources": []any{map[string]any{"kind": kind, "name": "*"}}}
		return w.Client.Create(w.Context(), obj, client.DryRunAll)
	}
	install(without)
	w.Eventually("an Alert may refer to a Kustomization", func() error { return alert("Kustomization") })
	if err := alert("Gate"); !apierrors.IsInvalid(err) {
		t.Errorf("without the component: %v", err)
	}
	install(documented)
	w.Eventually("an Alert may refer to a Gate", func() error { return alert("Gate") })
	receiver := harness.Object("notification.toolkit.fluxcd.io/v1", "Receiver", w.Key("gates"))
	receiver.Object["spec"] = map[string]any{
		"type": "generic", "secretRef": map[string]any{"name": "token"},
		"resources": []any{map[string]any{"apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "Gate", "name": "production"}},
	}
	w.Eventually("a Receiver may refer to a Gate", func() error { return w.Client.Create(w.Context(), receiver.DeepCopy(), client.DryRunAll) })
	if err := alert("Pod"); !apierrors.IsInvalid(err) {
		t.Errorf("for another kind: %v", err)
	}
}
