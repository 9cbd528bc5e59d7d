package calendars

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var fence = regexp.MustCompile("(?ms)^```(sh|text|yaml)\n(.*?)^```")

// script has the commands of the page in one session, as a reader runs them. It fails at the first one that fails or prints something else than the
// page says.
func script(t *testing.T, page string) string {
	t.Helper()
	text, ran := "set -eu\n", 0
	blocks := fence.FindAllStringSubmatch(page, -1)
	for i, block := range blocks {
		if block[1] != "sh" {
			continue
		}
		ran++
		text += fmt.Sprintf("{\n%s} > out\ncat out\n", block[2])
		if i+1 < len(blocks) && blocks[i+1][1] == "text" {
			text += fmt.Sprintf("cat > want <<'WANT'\n%sWANT\ndiff want out\n", blocks[i+1][2])
		}
	}
	if ran < 7 {
		t.Fatalf("%d blocks with commands", ran)
	}
	return text
}

func TestThePageOnSubscriptionsWorksAsWritten(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", "subscribe.md"))
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
	w := harness.NewWorld(t, cluster)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	s := start(w)
	shell := exec.CommandContext(t.Context(), "bash", "-c", script(t, page))
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
