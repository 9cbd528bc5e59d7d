package install

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// kustomizationFile has the fields of a kustomization.yaml that the docs show in most places.
type kustomizationFile struct {
	APIVersion string   `json:"apiVersion,omitempty"`
	Kind       string   `json:"kind,omitempty"`
	Resources  []string `json:"resources,omitempty"`
	Components []string `json:"components,omitempty"`
	Patches    []any    `json:"patches,omitempty"`
}

// blocksFor returns the blocks of a page for kustomize.
func blocksFor(t *testing.T, path string) (found []string) {
	t.Helper()
	for _, b := range markdown.Blocks(markdown.Page(t, path), "yaml") {
		if strings.Contains(b.Text, "kind: Kustomization\nresources:") || strings.HasPrefix(b.Text, "patches:") {
			found = append(found, b.Text)
		}
	}
	return found
}

// built returns the objects that kustomize builds from a kustomization.yaml next to config.
func built(t *testing.T, text string) objects {
	t.Helper()
	folder := kustomization(t)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := rendered(folder)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return all
}

// merged returns a kustomization with the content of both.
func merged(a, b kustomizationFile) kustomizationFile {
	all := kustomizationFile{APIVersion: "kustomize.config.k8s.io/v1beta1", Kind: "Kustomization", Patches: append(slices.Clone(a.Patches), b.Patches...)}
	for _, k := range []kustomizationFile{a, b} {
		for _, name := range k.Resources {
			if strings.HasPrefix(name, "config/") && !slices.Contains(all.Resources, name) {
				all.Resources = append(all.Resources, name)
			}
		}
		for _, name := range k.Components {
			if !slices.Contains(all.Components, name) {
				all.Components = append(all.Components, name)
			}
		}
	}
	return all
}

func text(t *testing.T, k kustomizationFile) string {
	t.Helper()
	raw, err := yaml.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A user who follows several pages adds the content of each to one kustomization.yaml.
func TestKustomizationsOfAllPagesCompose(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(harness.Root(), "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	together, alone := kustomizationFile{}, map[string]kustomizationFile{}
	for _, page := range pages {
		for _, block := range blocksFor(t, strings.TrimPrefix(page, harness.Root())) {
			var k kustomizationFile
			if yaml.UnmarshalStrict([]byte(block), &k) != nil || !slices.Contains(k.Resources, "config/default") {
				continue // with names or namespaces, or only a part of a kustomization
			}
			alone[filepath.Base(page)+": "+block] = merged(k, kustomizationFile{})
			together = merged(together, k)
		}
	}
	if len(alone) < 6 {
		t.Fatalf("only %d kustomizations in the docs", len(alone))
	}
	all := built(t, text(t, together))
	for page, k := range alone {
		has(t, all, page, built(t, text(t, k)))
	}
}

func TestNotificationsPage(t *testing.T) {
	const path = "docs/guides/notifications.md"
	blocks := blocksFor(t, path)
	if len(blocks) != 3 { // TestFluxAlertsAcceptGates has the last one
		t.Fatalf("%d blocks for kustomize", len(blocks))
	}
	const controller, shard = "Deployment gating-system/gating-controller", "Deployment gating-system/gating-controller-shard1"
	sends := func(all objects, deployment, flag string) {
		t.Helper()
		if got := flags(all[deployment]); !slices.Contains(got, flag) {
			t.Errorf("%s has the flags\n%s", deployment, strings.Join(got, "\n"))
		}
	}
	sends(built(t, blocks[0]), controller, "--events-addr=http://notification-controller.flux-system.svc.cluster.local./")
	patched := built(t, "resources:\n- config/default\ncomponents:\n- config/sharding\n"+blocks[1])
	for _, deployment := range []string{controller, shard} {
		sends(patched, deployment, "--events-addr=http://notification-controller.flux.svc.cluster.local./")
	}
	folder := kustomization(t)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(blocks[0]), 0o600); err != nil {
		t.Fatal(err)
	}
	// Flux may own fields, from another test.
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", folder); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cluster.Documented(t, "flux-system")
	ran := runsCommands(t, folder, path) + runsCommands(t, folder, "docs/guides/notification-messages.md")
	if ran != 3 {
		t.Errorf("the page has %d blocks with commands", ran)
	}
}

// runsCommands runs the blocks of a page with commands in a folder, and returns their number.
func runsCommands(t *testing.T, folder, path string) (ran int) {
	t.Helper()
	for _, b := range markdown.Blocks(markdown.Page(t, path), "sh") {
		ran++
		if out, err := bash(t.Context(), folder, b.Text); err != nil {
			t.Errorf("%s: %v: %s", b.Text, err, out)
		}
	}
	return ran
}

// bash runs a script in a folder, with the kubectl and the kubeconfig of the cluster.
func bash(ctx context.Context, folder, script string) (string, error) {
	return docs.Reader{Kubeconfig: cluster.Kubeconfig, Folder: folder}.Bash(ctx, script)
}
