package shards

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"

	appsv1 "k8s.io/api/apps/v1"
)

// runPage runs the blocks of docs/operate/scaling.md in turn, as its reader does: those of YAML
// are the kustomization.yaml of the folder from then on.
func (w *world) runPage() (output string) {
	w.Helper()
	dir := w.TempDir()
	w.Must(os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	ran := 0
	for _, block := range markdown.BlocksOf(w, "docs/operate/scaling.md", "sh", "yaml") {
		if block.Language == "yaml" {
			w.Must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(block.Text), 0o600))
			continue
		}
		shell := exec.CommandContext(w.Context(), "sh", "-euc", block.Text)
		shell.Dir = dir
		shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		if err != nil {
			w.Fatalf("%s%v: %s", block.Text, err, out)
		}
		output += string(out)
		ran++
	}
	if ran < 6 {
		w.Fatalf("%d blocks", ran)
	}
	return output
}

func TestTheCommandsOfThePageOnScalingWork(t *testing.T) {
	w := newWorld(t)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	g := w.gate(rest, "production", v1alpha1.StateClosed)
	w.has(rest, g)
	output := w.runPage()
	w.has(one, g)
	// How wide a column is depends on the Gates of other tests.
	for _, want := range []string{rest.lease(), one.lease(), "(?m)^flux-system +production +shard1 +1 +1 "} {
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("%q is not in %s", want, output)
		}
	}
	deployments := &appsv1.DeploymentList{}
	w.Must(w.Client.List(w.Context(), deployments, client.InNamespace(harness.RuntimeNamespace)))
	for _, value := range []string{"shard1", "shard2", "shard3"} {
		var has []string
		for _, d := range deployments.Items {
			if selector, err := labels.Parse(selectorOf(&d)); err == nil && selector.Matches(labels.Set{key: value}) {
				has = append(has, d.Name)
			}
		}
		want := map[string]string{"shard1": "-shard1", "shard2": "-shard2"}[value]
		if len(has) != 1 || has[0] != "gating-controller"+want {
			t.Errorf("a gate of %s belongs to %v", value, has)
		}
	}
}
