package api_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// shell runs a command from a page and returns its output.
func shell(w *harness.World, command string) (string, error) {
	w.Helper()
	return docs.Reader{Kubeconfig: w.Kubeconfig, Folder: w.TempDir()}.Bash(w.Context(), command)
}

func TestGatesPageExplainsPeriodOwnership(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	const page = "docs/reference/gates.md"
	example := markdown.BlockOf(t, page, "yaml", "---\napiVersion")
	command := markdown.BlockOf(t, page, "sh", "kubectl apply --server-side --field-manager=platform")
	conflict := strings.TrimSuffix(markdown.BlockOf(t, page, "console", "error: Apply failed"), "\n")

	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: "flux-system"}}
	w.Must(client.IgnoreAlreadyExists(w.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: g.Namespace}})))
	w.Must(client.IgnoreNotFound(w.Client.Delete(t.Context(), g)))
	for _, c := range []string{
		"kubectl apply --server-side --field-manager=kustomize-controller -f - <<EOT\n" + example + "EOT\n", command,
		"kubectl apply --server-side --field-manager=kustomize-controller -f - <<EOT\n" + example + "EOT\n", command,
	} {
		if out, err := shell(w, c); err != nil {
			t.Fatalf("%s: %v: %s", c, err, out)
		}
	}
	w.Read(g)
	if p := g.Spec.ClosePeriods; len(g.Spec.OpenPeriods) != 1 || len(p) != 2 || p[0].Name != "year-end" || p[1].Name != "migration" {
		t.Errorf("got %+v", g.Spec)
	}
	command = strings.NewReplacer("closePeriods:", "openPeriods:", "name: migration", "name: nights").Replace(command)
	out, err := shell(w, command)
	if err == nil || !slices.Contains(strings.Split(out, "\n"), conflict) {
		t.Errorf("the page shows %q, got %v: %s", conflict, err, out)
	}
}
