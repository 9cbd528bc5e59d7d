package calendars

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

func TestSubscriptionsPage(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	w := harness.NewWorld(t, cluster)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	s := start(w)
	reader := docs.Start(t, docs.Reader{Kubeconfig: cluster.Kubeconfig, Folder: folder(t, kustomization), Env: []string{"GATING_URL=" + s.url}})
	out := reader.Follow(markdown.BlocksOf(t, "docs/guides/subscribe.md")...)
	// The test runs the process itself.
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "gating-controller", Namespace: harness.RuntimeNamespace}}
	w.Read(deployment)
	container := deployment.Spec.Template.Spec.Containers[0]
	if !strings.Contains(fmt.Sprint(container.Args), "--calendar-addr=:9294") {
		t.Errorf("the component sets %q", container.Args)
	}
	w.Must(client.IgnoreNotFound(w.Client.Delete(w.Context(), deployment)))
	path := regexp.MustCompile(`production +True|/calendar/[0-9a-f]{64}\.ics`).FindAllString(out, -1)
	if len(path) == 0 {
		t.Errorf("the output has no path: %s", out)
	}
}
