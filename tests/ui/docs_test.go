package ui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// kustomization is that of config/default with pages, as the page of the docs has it.
const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- config/default\ncomponents:\n- config/ui\n"

// It installs what the others have, so it is not parallel.
func TestThePageOfTheDocsWorksAsWritten(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	blocks := markdown.BlocksOf(t, "docs/guides/page-on-the-wall.md")
	if !slices.Contains(blocks, markdown.Block{Language: "yaml", Text: "# kustomization.yaml\n" + kustomization}) {
		t.Error("the page has another kustomization")
	}
	// All tests here run this command.
	script, ran, compared := markdown.Script(slices.DeleteFunc(blocks, func(b markdown.Block) bool { return b.Text == "kubectl gate ui\n" }))
	if ran != 4 || compared == 0 {
		t.Fatalf("%d blocks with commands, %d with what they print", ran, compared)
	}
	w := newWorld(t)
	w.Documented(t, "flux-system")
	w.Cleanup(func() {
		_ = w.Client.Delete(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "wall"}})
	})
	folder := w.TempDir()
	w.Must(os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	w.Must(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600))
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = folder
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "GATING_URL="+strings.TrimSuffix(leading, "/"), "PATH="+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "gating-controller", Namespace: harness.RuntimeNamespace}}
	w.Read(deployment)
	if args := fmt.Sprint(deployment.Spec.Template.Spec.Containers[0].Args); !strings.Contains(args, "--ui-addr=:9295") {
		t.Errorf("the component sets %q", args)
	}
	w.Must(client.IgnoreNotFound(w.Client.Delete(w.Context(), deployment))) // the process runs here
}
