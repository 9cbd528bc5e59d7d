package namespaces

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// plugin runs kubectl gate with a kubeconfig and returns its output.
func (w *world) plugin(kubeconfig string, args ...string) string {
	w.Helper()
	program := filepath.Join(cluster.Dir(), "kubectl-gate")
	if _, err := os.Stat(program); err != nil {
		build := exec.CommandContext(w.Context(), "go", "build", "-o", program, "./cmd/kubectl-gate")
		build.Dir = harness.Root()
		if out, err := build.CombinedOutput(); err != nil {
			w.Fatalf("%v: %s", err, out)
		}
	}
	cmd := exec.CommandContext(w.Context(), program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.Fatalf("%q: %v: %s", args, err, out)
	}
	return string(out)
}

func (w *world) contains(out string, texts ...string) {
	w.Helper()
	for _, text := range texts {
		if !strings.Contains(out, text) {
			w.Errorf("want %q in\n%s", text, out)
		}
	}
}

func TestPluginListsNamespacesOfGate(t *testing.T) {
	w := newWorld(t)
	w.close()
	app := w.app(w.tenant(), "app")
	w.Create(app)
	w.becomes(app, true)
	admin := cluster.Kubeconfig
	w.contains(w.plugin(admin, "why", "kustomization/app", "-n", app.GetNamespace()), w.Namespace+"/freeze",
		fmt.Sprintf("spec.targets[0]: Kustomization * in namespaces with %s=%s", tenant, w.Namespace))
	w.contains(w.plugin(admin, "status", "freeze", "-n", w.Namespace), "Kustomization/app in "+app.GetNamespace(), "1 held")

	t.Run("a user who may read the gates but not the namespaces gets a warning", func(t *testing.T) {
		w := &world{World: w.On(t), freeze: w.freeze}
		kubeconfig, err := cluster.KubeconfigFor("victor")
		w.Must(err)
		role := "sees-gates-" + w.Namespace
		for _, args := range [][]string{
			{"create", "clusterrole", role, "--verb=get,list", "--resource=gates.gating.toolkit.fluxcd.io,kustomizations.kustomize.toolkit.fluxcd.io"},
			{"create", "clusterrolebinding", role, "--clusterrole=" + role, "--user=victor"},
		} {
			_, err := cluster.Kubectl(w.Context(), args...)
			w.Must(err)
		}
		out := w.plugin(kubeconfig, "why", "kustomization/app", "-n", app.GetNamespace())
		w.contains(out, w.Namespace+"/freeze", "you may not get namespaces", "a gate that selects namespaces by labels is not shown")
	})
}

// The test checks the manifest of the page and its description.
func TestAllNamespacesPage(t *testing.T) {
	w := newWorld(t)
	block := markdown.BlocksOf(t, "docs/guides/company-freeze.md", "yaml")[0]
	manifest := strings.NewReplacer("namespace: flux-system", "namespace: "+w.Namespace, "2026-12-19", "2020-12-19", "2027-01-04", "2999-01-04", "key: tenant,", "key: tenant-"+w.Namespace+",").Replace(block.Text)
	file := filepath.Join(t.TempDir(), "gate.yaml")
	w.Must(os.WriteFile(file, []byte(manifest), 0o600))
	_, err := cluster.Kubectl(w.Context(), "apply", "-f", file)
	w.Must(err)
	t.Cleanup(func() {
		if _, err := cluster.Kubectl(context.Background(), "delete", "-f", file); err != nil {
			t.Error(err)
		}
	})
	shop := w.NewNamespace(func(n *corev1.Namespace) { n.Labels = map[string]string{"tenant-" + w.Namespace: "shop"} })
	frozen, exempt, other := w.app(shop, "apps"), w.app(shop, "hotfix"), w.app(w.NewNamespace(), "apps")
	exempt.SetLabels(map[string]string{"freeze": "exempt"})
	w.Create(frozen)
	w.Create(exempt)
	w.Create(other)
	w.becomes(frozen, true)
	w.becomes(exempt, false)
	w.becomes(other, false)
}
