package ui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// kustomization is that of config/default with pages, as the page of the docs has it.
const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- config/default\ncomponents:\n- config/ui\n"

var fence = regexp.MustCompile("(?ms)^```(sh|text|yaml)\n(.*?)^```")

// script has the commands of the page in one session, as a reader runs them, without the one that all tests here run. It fails at the first one that
// fails or prints something else than the page says.
func script(t *testing.T, page string) string {
	t.Helper()
	text, ran := "set -eu\n", 0
	blocks := fence.FindAllStringSubmatch(page, -1)
	for i, block := range blocks {
		if block[1] != "sh" || block[2] == "kubectl gate ui\n" {
			continue
		}
		ran++
		text += fmt.Sprintf("{\n%s} > out\n", block[2])
		if i+1 < len(blocks) && blocks[i+1][1] == "text" {
			text += fmt.Sprintf("cat > want <<'WANT'\n%sWANT\ndiff want out\n", blocks[i+1][2])
		}
	}
	if ran != 4 {
		t.Fatalf("%d blocks with commands", ran)
	}
	return text
}

// It installs what the others have, so it is not parallel.
func TestThePageOfTheDocsWorksAsWritten(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", "page-on-the-wall.md"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	page := string(content)
	if !strings.Contains(page, "```yaml\n# kustomization.yaml\n"+kustomization+"```") {
		t.Error("the page has another kustomization")
	}
	w := newWorld(t)
	w.Documented(t, "flux-system")
	w.Cleanup(func() {
		_ = w.Client.Delete(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "wall"}})
	})
	folder := w.TempDir()
	w.Must(os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	w.Must(os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(kustomization), 0o600))
	shell := exec.CommandContext(t.Context(), "bash", "-c", script(t, page))
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
