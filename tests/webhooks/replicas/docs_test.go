package replicas

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// pages returns the blocks of the pages on webhooks in the order of a reader: senders are set up before a token changes.
func pages(t *testing.T) []markdown.Block {
	t.Helper()
	read := func(name string) string { return markdown.Page(t, "docs/guides/"+name) }
	way, change, found := strings.Cut(read("pipelines-and-alerts.md"), "\n## Change a token\n")
	if !found {
		t.Fatal("no page has a section on changing a token")
	}
	return markdown.Blocks(way + read("webhook-signatures.md") + read("webhook-senders.md") + read("production-follows-staging.md") + change)
}

func TestWebhookPagesCommandsWork(t *testing.T) {
	standins := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(standins, "curl"), "./standin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Link(filepath.Join(standins, "curl"), filepath.Join(standins, "openssl")); err != nil {
		t.Fatal(err)
	}
	t.Run("with stand-ins", func(t *testing.T) { runPages(t, standins) })
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("%s is not installed, the pages were run only with stand-ins", program)
			return
		}
	}
	t.Run("with curl and openssl", func(t *testing.T) { runPages(t) })
}

// runPages runs the pages in the folder of the repository, like a reader. Only the issuer of tokens is replaced with one on loopback.
func runPages(t *testing.T, first ...string) {
	t.Helper()
	w := newWorld(t)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	issuer := newIssuer(t)
	p := w.start()
	// The cleanup installs the components that the pages delete.
	w.Cleanup(func() {
		if err := cluster.InstallComponent(context.WithoutCancel(w.Context()), "webhooks"); err != nil {
			w.Error(err)
		}
	})
	reader := docs.Start(t, docs.Reader{Kubeconfig: cluster.Kubeconfig, Path: first, Env: []string{
		"GATING_URL=" + p.Webhooks,
		"ACTIONS_ID_TOKEN=" + issuer.token(map[string]any{
			"aud": v1alpha1.DefaultOIDCAudience, "repository_id": "123456789", "ref": "refs/heads/main", "jti": "one",
			"job_workflow_ref": "example-org/shop/.github/workflows/smoke.yaml@refs/heads/main",
		}),
	}})
	sample := filepath.Join(reader.Folder, "config", "samples", "gatereceiver_github_oidc.yaml")
	content, err := os.ReadFile(sample)
	w.Must(err)
	w.Must(os.WriteFile(sample, []byte(strings.ReplaceAll(string(content), "https://token.actions.githubusercontent.com", issuer.url)), 0o600))
	reader.Follow(slices.DeleteFunc(pages(t), func(b markdown.Block) bool { return b.Language == "console" })...) // tests/cli runs those
	for gate, by := range map[string]string{"sre-approval": "gitlab-pipeline", "no-deploy-friday": "incident", "no-alerts": "alertmanager", "staging-healthy": "staging-events"} {
		w.Eventually("the webhook is handled", func() error {
			g := &v1alpha1.Gate{}
			if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: gate}, g); err != nil {
				return err
			}
			if r := g.LatestRequest(); r == nil || r.RequestedBy != "GateReceiver flux-system/"+by || r.Message == "" || r.Source != v1alpha1.SourceWebhook {
				return fmt.Errorf("the last request on %s is %+v", gate, r)
			}
			return nil
		})
	}
}

func TestWebhookPagesManifestsAreAccepted(t *testing.T) {
	accepted := 0
	for _, block := range pages(t) {
		if block.Language != "yaml" || !strings.Contains(block.Text, "kind: Ingress") {
			continue
		}
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(block.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--dry-run=server", "-f", file); err != nil {
			t.Error(err)
		}
		accepted++
	}
	if accepted == 0 {
		t.Error("the pages have no manifests")
	}
}
