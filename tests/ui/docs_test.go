package ui

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// The test installs objects that other tests use, so it is not parallel.
func TestWebUIPageWorks(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	w := newWorld(t)
	w.Documented(t, "flux-system")
	w.Cleanup(func() {
		_ = w.Client.Delete(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flux-system", Name: "wall"}})
	})
	reader := docs.Start(t, docs.Reader{Kubeconfig: cluster.Kubeconfig, Env: []string{"GATING_URL=" + strings.TrimSuffix(leading, "/")}})
	// All other tests here run kubectl gate ui.
	reader.Follow(slices.DeleteFunc(markdown.BlocksOf(t, "docs/guides/page-on-the-wall.md"), func(b markdown.Block) bool { return b.Text == "kubectl gate ui\n" })...)
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "gating-controller", Namespace: harness.RuntimeNamespace}}
	w.Read(deployment)
	if args := fmt.Sprint(deployment.Spec.Template.Spec.Containers[0].Args); !strings.Contains(args, "--ui-addr=:9295") {
		t.Errorf("the component sets %q", args)
	}
	w.Must(client.IgnoreNotFound(w.Client.Delete(w.Context(), deployment))) // the test runs the process itself
}
