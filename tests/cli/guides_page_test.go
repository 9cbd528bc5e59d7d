package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// TestHotfixPage runs the page during its freeze.
func TestHotfixPage(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	apps := w.heldApps()
	at := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.RFC3339) }
	now := strings.NewReplacer("2026-12-19T00:00:00Z", at(-1), "2027-01-04T00:00:00Z", at(9))
	for _, b := range w.blocksOf("guides/hotfix-in-a-freeze.md") {
		switch {
		case b.Language == "yaml":
			if w.writes(folder, b) == "gate.yaml" {
				w.Must(os.WriteFile(filepath.Join(folder, "now.yaml"), []byte(now.Replace(b.Text)), 0o600))
				w.follows(folder, markdown.Block{Language: "sh", Text: "kubectl apply --server-side --force-conflicts -f now.yaml"})
				w.Decided(w.ReadGate("production"))
			}
			continue
		case strings.Contains(b.Text, "gate pass "):
			w.isHeldBy(apps, "production")
			w.publish("v3")
		}
		w.follows(folder, b)
		if strings.Contains(b.Text, "gate open ") {
			w.applies(apps, map[bool]string{true: "v2", false: "v3"}[b.Language == "console"])
		}
	}
}

func TestNightsPage(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	for _, b := range w.blocksOf("guides/nights-and-weekends.md") {
		if b.Language == "yaml" {
			w.follows(folder, markdown.Block{Language: "sh", Text: "kubectl apply --dry-run=server -f " + w.writes(folder, b)})
			continue
		}
		w.follows(folder, b)
	}
	w.Decided(w.ReadGate("off-hours"))
}

// appliesItsOwn creates a Kustomization that applies the artifact of the same name.
func (w *world) appliesItsOwn(name string) {
	w.Helper()
	w.staged(name, "v1", "ConfigMap")
	obj := w.Kustomization(name)
	obj.Object["spec"] = map[string]any{
		"interval": "1h", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "ExternalArtifact", "name": name},
	}
	w.Create(obj)
	w.applies(obj, "v1")
}

// staged publishes a revision of an artifact with an object of a kind.
func (w *world) staged(name, revision, kind string) {
	w.Helper()
	w.Must(artifacts.Publish(w.Context(), w.Client, w.Key(name), revision, map[string]string{
		"app.yaml": fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata: {name: %s, namespace: %s}\ndata: {revision: %s}\n", kind, name, w.Namespace, revision),
	}))
}

// The output of a command may take a moment. Commands with webhooks are run in tests/webhooks/replicas.
func TestStagingPage(t *testing.T) {
	t.Parallel()
	w, folder, ran := newWorld(t), t.TempDir(), 0
	w.appliesItsOwn("staging")
	w.appliesItsOwn("production")
	for _, b := range w.blocksOf("guides/production-follows-staging.md") {
		switch {
		case b.Language == "yaml" && strings.HasPrefix(b.Text, "# "):
			w.writes(folder, b)
		case b.Language == "console":
			w.follows(folder, b)
			switch ran++; ran {
			case 1:
				w.staged("staging", "v2", "ConfigMapp")
				w.Eventually("production is held", func() error {
					obj := w.Kustomization("production")
					if w.Read(obj); harness.HeldBy(obj) == "" {
						return fmt.Errorf("production is not held: %v", obj.Object["spec"])
					}
					return nil
				})
				w.staged("production", "v2", "ConfigMap")
			case 2:
				w.staged("staging", "v3", "ConfigMap")
			}
		}
	}
}

// exceptionApprovalsPage runs docs/guides/approve-an-exception.md, and the part about write permissions of docs/guides/exceptions.md.
func exceptionApprovalsPage(w *world) {
	w.Decided(w.Gate("production", frozen()))
	folder := w.TempDir()
	w.Must(os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	var commands []markdown.Block
	for _, page := range []string{"guides/exceptions.md", "guides/approve-an-exception.md"} {
		for _, b := range w.blocksOf(page) {
			if b.Language == "sh" && (page != "guides/exceptions.md" || !strings.HasPrefix(b.Text, "kubectl gate ")) { // these commands need no cluster
				commands = append(commands, b)
			}
		}
	}
	if len(commands) != 6 {
		w.Fatalf("the pages have %d blocks with commands", len(commands))
	}
	for _, b := range commands[:3] {
		w.follows(folder, b)
	}
	w.Decided(w.ReadGate("production"))
	alice, bob, carol := w.as("alice", "on-call"), w.as("bob", "sre"), w.as("carol", "sre")
	w.expect(alice.gate("exception", "production", "--for=1h", "--name=hotfix", "--apply"), 0, "", "it needs 2 approvals by others")
	w.expect(bob.in(folder, commands[3].Text), 0, "approved by bob, 1 of 2 approvals", "")
	w.expect(bob.in(folder, commands[4].Text), 0, "requires 2 approvals, 1 given by bob; its authors cannot approve it: alice", "")
	w.expect(carol.in(folder, commands[3].Text), 0, " approvals, in force until ", "") // "2 of 2" if the condition is still WaitingApproval
	w.expect(carol.in(folder, commands[5].Text), 0, "approvedBy: bob\n", "")
	w.Opened("production", "True")
}

// opensInAnEmergency runs the section about emergencies of docs/guides/hotfix-in-a-freeze.md as a user with no other permissions.
func opensInAnEmergency(w *world) {
	spec := frozen()
	spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}
	w.Decided(w.Gate("production", spec))
	w.may("greta", "gate-emergency-opener")
	for _, b := range w.blocksOf("guides/hotfix-in-a-freeze.md") {
		if strings.Contains(b.Text, "--emergency") {
			w.as("greta").follows(w.TempDir(), b)
		}
	}
	w.Opened("production", "True")
}

// inNamespaceOf replaces the namespace of a page with that of the world.
func (w *world) inNamespaceOf(page, text string) string {
	return regexp.MustCompile(`(namespace: |-n )`+page+`\b`).ReplaceAllString(text, "${1}"+w.Namespace)
}

// The pages on certificates show processes that take weeks. This test runs only their manifests and commands.
func TestCertificatesPageCommandsWork(t *testing.T) {
	t.Parallel()
	for page, tc := range map[string]struct {
		namespace string
		before    string
	}{
		"guides/certificates.md": {"shop", ""},
		"guides/delayed-activation.md": {"shop", "kubectl create secret generic web-tls --from-literal=tls.crt=a" +
			" && kubectl create secret generic web-tls-previous --from-literal=tls.crt=b"},
		"guides/node-certificates.md": {"fleet", "kubectl apply -f - <<<'{apiVersion: cluster.x-k8s.io/v1beta2, kind: Machine, metadata: {name: control-1}," +
			" spec: {clusterName: c, bootstrap: {dataSecretName: b}, infrastructureRef: {kind: A, name: a, apiGroup: a.example.com}}}'"},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			w, folder := newWorld(t), t.TempDir()
			w.Must(os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
			does := func(commands string) {
				t.Helper()
				if got := w.in(folder, commands); got.code != 0 {
					t.Fatalf("%s\n%+v", commands, got)
				}
			}
			if tc.before != "" {
				does(tc.before)
			}
			for _, b := range w.blocksOf(page) {
				text := w.inNamespaceOf(tc.namespace, b.Text)
				switch first, _, _ := strings.Cut(text, "\n"); {
				case b.Language == "yaml" && strings.Contains(text, "apiVersion: "):
					file := strings.TrimPrefix(first, "# ")
					if !strings.HasPrefix(first, "# ") {
						file = "manifest.yaml"
					}
					w.Must(os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600))
					does("kubectl apply -f " + file)
				case b.Language == "sh":
					does(regexp.MustCompile(`apply (-[kf] config)`).ReplaceAllString(text, "apply --dry-run=server $1"))
				case b.Language == "console" && strings.HasPrefix(text, "$ "):
					does(docs.Commands(text)[0].Text)
				}
			}
		})
	}
}
