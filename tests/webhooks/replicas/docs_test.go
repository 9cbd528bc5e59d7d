package replicas

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// aBlock is one of shell with what it prints, if the page says so.
var aBlock = regexp.MustCompile("(?s)```(sh|text|yaml)\n(.*?)```\n")

// pages returns the blocks of the pages on webhooks as somebody goes through them: senders are set up before a token changes.
func pages(t *testing.T) [][]string {
	t.Helper()
	read := func(name string) string {
		content, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "guides", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	way, change, found := strings.Cut(read("pipelines-and-alerts.md"), "\n## Change a token\n")
	if !found {
		t.Fatal("no page says how to change a token")
	}
	return aBlock.FindAllStringSubmatch(way+read("webhook-senders.md")+read("production-follows-staging.md")+change, -1)
}

// script has all blocks of shell as they are, in one session, as a reader runs them.
// It fails at the first one that fails or prints something else than the page says.
func script(t *testing.T) string {
	t.Helper()
	text, curls, shown := "set -eu\n", 0, 0
	blocks := pages(t)
	for i, block := range blocks {
		if block[1] != "sh" {
			continue
		}
		curls += strings.Count(block[2], "curl ")
		file := fmt.Sprintf(`"$OUT/%d"`, i)
		text += fmt.Sprintf("{\n%s} > %s || { cat %s; exit 1; }\ncat %s\n", block[2], file, file, file)
		if i+1 < len(blocks) && blocks[i+1][1] == "text" {
			shown++
			text += fmt.Sprintf("cat > \"$OUT/want\" <<'WANT'\n%sWANT\ndiff \"$OUT/want\" %s\n", blocks[i+1][2], file)
		}
	}
	if curls < 8 || shown < 8 {
		t.Fatalf("%d requests on the pages, and %d answers", curls, shown)
	}
	return text
}

func TestTheCommandsOfThePagesOnWebhooksWork(t *testing.T) {
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
	t.Run("with stand-ins", func(t *testing.T) { runPages(t, standins+":") })
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Logf("there is no %s, the pages were run with stand-ins alone", program)
			return
		}
	}
	t.Run("with curl and openssl", func(t *testing.T) { runPages(t, "") })
}

// runPages runs the pages in the folder of the repository as their reader sees it. Only
// the issuer of tokens is another one, on loopback.
func runPages(t *testing.T, first string) {
	t.Helper()
	w := newWorld(t)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	p := w.start()
	// It installs what the pages take away.
	w.Cleanup(func() {
		if err := cluster.InstallComponent(context.WithoutCancel(w.Context()), "webhooks"); err != nil {
			w.Error(err)
		}
	})
	issuer := newIssuer(t)
	dir := t.TempDir()
	w.Must(os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	sample := filepath.Join(dir, "config", "samples", "gatereceiver_github_oidc.yaml")
	content, err := os.ReadFile(sample)
	w.Must(err)
	w.Must(os.WriteFile(sample, []byte(strings.ReplaceAll(string(content), "https://token.actions.githubusercontent.com", issuer.url)), 0o600))

	shell := exec.CommandContext(w.Context(), "sh", "-c", script(t))
	shell.Dir = dir
	shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "GATING_URL="+p.Webhooks, "OUT="+t.TempDir(),
		"PATH="+first+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"),
		"ACTIONS_ID_TOKEN="+issuer.token(map[string]any{
			"aud": v1alpha1.DefaultOIDCAudience, "repository_id": "123456789", "ref": "refs/heads/main", "jti": "one",
			"job_workflow_ref": "example-org/shop/.github/workflows/smoke.yaml@refs/heads/main",
		}))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for gate, by := range map[string]string{"sre-approval": "gitlab-pipeline", "no-deploy-friday": "incident", "no-alerts": "alertmanager", "staging-healthy": "staging-events"} {
		w.Eventually("the webhook is handled", func() error {
			g := &v1alpha1.Gate{}
			if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.Namespace, Name: gate}, g); err != nil {
				return err
			}
			if r := g.Status.LastRequest; r == nil || r.By != "GateReceiver flux-system/"+by || r.Reason == "" || r.Source != v1alpha1.SourceWebhook {
				return fmt.Errorf("the last request on %s is %+v", gate, r)
			}
			return nil
		})
	}
}

func TestTheManifestsOfThePagesOnWebhooksAreAccepted(t *testing.T) {
	accepted := 0
	for _, block := range pages(t) {
		if block[1] != "yaml" || !strings.Contains(block[2], "kind: Ingress") {
			continue
		}
		file := filepath.Join(t.TempDir(), "manifest.yaml")
		if err := os.WriteFile(file, []byte(block[2]), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--dry-run=server", "-f", file); err != nil {
			t.Error(err)
		}
		accepted++
	}
	if accepted == 0 {
		t.Error("there are none")
	}
}
