package calendars

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

func TestThePageOnSubscriptionsWorksAsWritten(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	blocks := markdown.BlocksOf(t, "docs/guides/subscribe.md")
	if !slices.Contains(blocks, markdown.Block{Language: "yaml", Text: "# kustomization.yaml\n" + kustomization}) {
		t.Error("the page has another kustomization")
	}
	script, ran, compared := markdown.Script(blocks)
	if ran < 7 || compared == 0 {
		t.Fatalf("%d blocks with commands, %d with what they print", ran, compared)
	}
	w := harness.NewWorld(t, cluster)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	s := start(w)
	shell := exec.CommandContext(t.Context(), "bash", "-c", script)
	shell.Dir = folder(t, kustomization)
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "GATING_URL="+s.url, "PATH="+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	// The process runs here.
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "gating-controller", Namespace: harness.RuntimeNamespace}}
	w.Read(deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if !strings.Contains(fmt.Sprint(container.Args), "--calendar-addr=:9294") {
		t.Errorf("the component sets %q", container.Args)
	}
	w.Must(client.IgnoreNotFound(w.Client.Delete(w.Context(), deployment)))
	path := regexp.MustCompile(`production +True|/calendar/[0-9a-f]{64}\.ics`).FindAllString(string(out), -1)
	if len(path) == 0 {
		t.Errorf("nobody sees a path: %s", out)
	}
}
