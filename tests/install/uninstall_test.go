package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// installed is a separate cluster with the controller, a closed Gate and its target.
type installed struct {
	*harness.World
	controller *harness.Process
	gate       *v1alpha1.Gate
	app        *unstructured.Unstructured
	// folder contains install.yaml.
	folder string
}

func newInstalled(t *testing.T) *installed {
	t.Helper()
	c, err := harness.StartControlPlane("kustomize-controller", "source-controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	i := &installed{World: harness.NewWorld(t, c), folder: t.TempDir()}
	i.Must(c.Install(i.Context()))
	rendered, err := harness.Kustomize(filepath.Join(harness.Root(), "config", "default"))
	i.Must(err)
	i.Must(os.WriteFile(filepath.Join(i.folder, "install.yaml"), []byte(rendered), 0o600))
	i.installs()
	manager, err := c.StartControllerManager(i.Context(), "namespace-controller", "garbage-collector-controller")
	i.Must(err)
	t.Cleanup(func() { _ = manager.Stop() })
	i.starts()
	i.app = i.Kustomization("app")
	i.Create(i.app)
	i.gate = i.ClosedGate("production", v1alpha1.TargetReference{Kind: "Kustomization", Name: "app"})
	i.held(true)
	return i
}

// installs applies install.yaml. The Deployment has no Pods in this test.
func (i *installed) installs() {
	i.Helper()
	i.kubectl("apply", "--server-side", "--force-conflicts", "-f", filepath.Join(i.folder, "install.yaml"))
}

// kubectl returns the output of a command.
func (i *installed) kubectl(args ...string) string {
	i.Helper()
	out, err := i.Kubectl(i.Context(), args...)
	i.Must(err)
	return out
}

// starts starts the controller, as the Deployment would.
func (i *installed) starts() {
	i.Helper()
	var err error
	i.controller, err = i.StartGatingController(i.Context())
	i.Must(err)
	i.Cleanup(func() { _ = i.controller.Stop() })
}

// held waits until the target is suspended, or is not.
func (i *installed) held(want bool) {
	i.Helper()
	i.Eventually(fmt.Sprintf("the target is suspended: %t", want), func() error {
		if i.Read(i.app); harness.Suspended(i.app) != want {
			return fmt.Errorf("spec is %v", i.app.Object["spec"])
		}
		return nil
	})
}

// runs runs the commands of a section of docs/start/upgrade.md, and returns their output.
func (i *installed) runs(ctx context.Context, section string) (string, error) {
	i.Helper()
	_, text, ok := strings.Cut(markdown.Page(i, "docs/start/upgrade.md"), "# "+section+"\n")
	if !ok {
		i.Fatalf("docs/start/upgrade.md has no section %s", section)
	}
	text, _, _ = strings.Cut(text, "\n##")
	var commands strings.Builder
	for _, block := range markdown.Blocks(text, "sh") {
		commands.WriteString(block.Text)
	}
	if commands.Len() == 0 {
		i.Fatalf("the section %s has no commands", section)
	}
	return i.bash(ctx, commands.String())
}

// bash runs commands as a user with all permissions in the folder with install.yaml, and returns their output.
func (i *installed) bash(ctx context.Context, commands string) (string, error) {
	return docs.Reader{Kubeconfig: i.Kubeconfig, Folder: i.folder}.Bash(ctx, commands)
}

// gone fails the test unless all installed objects of some kinds are deleted.
func (i *installed) gone(kinds ...string) {
	i.Helper()
	out, err := i.Kubectl(i.Context(), "get", strings.Join(kinds, ","), "--all-namespaces", "-o=name")
	i.Must(err)
	for line := range strings.Lines(out) {
		if strings.Contains(line, "gating") && !strings.Contains(line, "gatelocks") {
			i.Errorf("%s still exists", strings.TrimSpace(line))
		}
	}
}

func TestUninstallPageReleasesAll(t *testing.T) {
	t.Parallel()
	i := newInstalled(t)
	ctx, cancel := context.WithTimeout(i.Context(), 2*time.Minute)
	defer cancel()
	if out, err := i.runs(ctx, "Uninstall"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	i.held(false)
	i.gone("namespaces", "crd", "clusterroles", "clusterrolebindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings")
}

func TestUninstallPageKeepsSuspensions(t *testing.T) {
	t.Parallel()
	i := newInstalled(t)
	// Without the Deployment, this replaces the deletion of its Pods.
	i.Must(i.controller.Stop())
	ctx, cancel := context.WithTimeout(i.Context(), 2*time.Minute)
	defer cancel()
	for _, section := range []string{"Keep what is suspended", "Uninstall"} {
		if out, err := i.runs(ctx, section); err != nil {
			t.Fatalf("%s: %v: %s", section, err, out)
		}
	}
	i.held(true)
	i.gone("namespaces", "crd", "clusterroles", "clusterrolebindings", "validatingadmissionpolicies", "validatingadmissionpolicybindings")
	i.Must(i.Flux(i.app, `{"spec":{"suspend":false}}`))
	i.held(false)
}

// Users try this first. Nothing may be lost.
func TestDeletionOfEverythingIsRefused(t *testing.T) {
	t.Parallel()
	i := newInstalled(t)
	for range 2 { // the command also deletes the policy, which must remain in force
		out, err := i.Kubectl(i.Context(), "delete", "-f", filepath.Join(i.folder, "install.yaml"), "--ignore-not-found", "--wait=false")
		if err == nil {
			t.Fatalf("everything was deleted: %s", out)
		}
		for _, name := range []string{"gating-system", "gates.gating.toolkit.fluxcd.io", "gateexceptions.gating.toolkit.fluxcd.io", "gatereceivers.gating.toolkit.fluxcd.io", "calendarfeeds.gating.toolkit.fluxcd.io"} {
			if !strings.Contains(out, "denied request: delete all gates first, because the objects that they hold would stay suspended; then annotate "+name+" with gating.toolkit.fluxcd.io/uninstall=true") {
				t.Errorf("the output does not name %s: %s", name, out)
			}
		}
		i.gone("deployments", "clusterroles")
	}
	// A deleted policy is in force for another moment.
	i.Throughout(5*time.Second, "the policy is in force", func() error {
		_, err := i.Kubectl(i.Context(), "delete", "namespace", harness.RuntimeNamespace, "--dry-run=server")
		if err == nil || !strings.Contains(err.Error(), "delete all gates first") {
			return errors.Join(err, errors.New("the namespace can be deleted"))
		}
		return nil
	})
	_, err := i.Kubectl(i.Context(), "delete", "--raw=/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=metadata.name%3Dgatereceivers.gating.toolkit.fluxcd.io")
	if err == nil || !strings.Contains(err.Error(), "delete all gates first") {
		t.Errorf("deletion as a collection: %v", err)
	}
	// The Pods would be deleted.
	i.Must(i.controller.Stop())
	i.Read(i.gate)
	if i.gate.DeletionTimestamp != nil {
		t.Error("the gate is deleted")
	}
	i.held(true)

	i.installs()
	i.starts()
	i.Annotate(i.gate, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	i.held(false)
}

// The controller still runs then, and finalizes its Gates.
func TestDeletionOfCRDsReleasesAll(t *testing.T) {
	t.Parallel()
	i := newInstalled(t)
	const gates = "crd/gates.gating.toolkit.fluxcd.io"
	for _, args := range [][]string{{"annotate", gates, "gating.toolkit.fluxcd.io/uninstall=true"}, {"delete", gates, "--timeout=60s"}} {
		if _, err := i.Kubectl(i.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	i.held(false)
	if err := i.TryRead(i.gate); !apierrors.IsNotFound(err) {
		t.Errorf("the gate: %v", err)
	}
}
