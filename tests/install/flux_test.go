package install

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// example returns the block of docs/start/install.md that begins with the name of a file.
func example(t *testing.T, file string) string {
	t.Helper()
	return markdown.BlockOf(t, "docs/start/install.md", "yaml", "# "+file+"\n")
}

// manifests are the files of config, as in the archive of a release.
func manifests(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	config := os.DirFS(filepath.Join(harness.Root(), "config"))
	err := fs.WalkDir(config, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(path, "chart/") {
			return err
		}
		raw, err := fs.ReadFile(config, path)
		files[path] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestKustomizationOfPageIsApplied(t *testing.T) {
	folder := kustomization(t)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(example(t, "kustomization.yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", folder); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl(t.Context(), "-n", harness.RuntimeNamespace, "get", "poddisruptionbudget", "gating-controller"); err != nil {
		t.Error(err)
	}
}

func TestReadmeInstallCommand(t *testing.T) {
	_, section, _ := strings.Cut(markdown.Page(t, "README.md"), "\n## Install\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := markdown.Blocks(section, "sh")
	if len(blocks) != 1 || strings.Count(blocks[0].Text, "\n") != 1 {
		t.Fatalf("the README has other commands: %q", blocks)
	}
	args := strings.Fields(strings.Replace(strings.TrimPrefix(blocks[0].Text, "kubectl "), "config/", filepath.Join(harness.Root(), "config")+"/", 1))
	if out, err := cluster.Kubectl(t.Context(), append(args, "--force-conflicts")...); err != nil || !strings.Contains(out, "deployment.apps/gating-controller serverside-applied") {
		t.Errorf("%s, %v", out, err)
	}
}

// fluxInstalls makes Flux install as on the page. There is no node, so nothing waits for the Pods.
func fluxInstalls(t *testing.T, c *harness.ControlPlane) {
	t.Helper()
	ctx := t.Context()
	for _, start := range []func() (*harness.Process, error){
		func() (*harness.Process, error) { return c.StartSourceController(ctx) },
		func() (*harness.Process, error) { return c.StartKustomizeController(ctx) },
	} {
		process, err := start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = process.Stop() })
	}
	registry := harness.StartRegistry()
	t.Cleanup(registry.Stop)
	if err := registry.Push("gating-controller-manifests", "v0.1.0", manifests(t)); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "flux-system"}}
	if err := client.IgnoreAlreadyExists(c.Client.Create(ctx, namespace)); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("oci://REGISTRY/gating-controller-manifests", registry.URL("gating-controller-manifests")+"\n  insecure: true",
		"  wait: true\n  timeout: 5m\n", "").Replace(example(t, "gating-controller.yaml"))
	path := filepath.Join(t.TempDir(), "gating-controller.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(ctx, "apply", "-f", path); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gating-controller", "gating-policies"} {
		if _, err := c.Kubectl(ctx, "-n", "flux-system", "wait", "--for=condition=Ready", "--timeout=60s", "kustomization/"+name); err != nil {
			out, _ := c.Kubectl(ctx, "-n", "flux-system", "get", "kustomizations,ocirepositories", "-o=wide")
			t.Fatalf("%v\n%s", err, out)
		}
	}
}

func TestFluxInstallPage(t *testing.T) {
	ctx := t.Context()
	fluxInstalls(t, cluster)
	deployment := &appsv1.Deployment{}
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: harness.RuntimeNamespace, Name: "gating-controller"}, deployment); err != nil {
		t.Fatal(err)
	}
	if *deployment.Spec.Replicas != 2 {
		t.Errorf("%d replicas", *deployment.Spec.Replicas)
	}
	if _, err := cluster.Kubectl(ctx, "get", "validatingadmissionpolicy", "gate-edit"); err != nil {
		t.Error(err)
	}
}

// A user removes the Kustomization from Git while a Gate is closed.
func TestFluxDoesNotPruneNamespaceAndCRDs(t *testing.T) {
	t.Parallel()
	i := newInstalled(t)
	fluxInstalls(t, i.ControlPlane)
	i.kubectl("-n", "flux-system", "delete", "kustomizations", "--all", "--timeout=60s")
	// The Pods would be deleted with the Deployment.
	i.Must(i.controller.Stop())
	i.gone("deployments", "clusterroles")
	for _, kept := range []string{
		"namespace/gating-system", "crd/gates.gating.toolkit.fluxcd.io", "crd/gateexceptions.gating.toolkit.fluxcd.io", "crd/gatereceivers.gating.toolkit.fluxcd.io",
		"crd/calendarfeeds.gating.toolkit.fluxcd.io",
	} {
		if deleted := i.kubectl("get", kept, "-o=jsonpath={.metadata.deletionTimestamp}"); deleted != "" {
			t.Errorf("%s is deleted at %s", kept, deleted)
		}
	}
	if i.Read(i.gate); i.gate.DeletionTimestamp != nil {
		t.Error("the gate is deleted")
	}
	i.held(true)

	i.installs()
	i.starts()
	i.Annotate(i.gate, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	i.held(false)
}
