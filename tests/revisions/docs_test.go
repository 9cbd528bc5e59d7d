package revisions

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// blocks returns the blocks of a language in the pages on GatedSources that contain some words, with the namespace of the test.
func (w *world) blocks(language, words string) (found []string) {
	w.Helper()
	for _, page := range []string{"approve-a-revision.md", "move-to-a-gated-source.md"} {
		for _, b := range markdown.Blocks(markdown.Page(w, "docs/guides/"+page), language) {
			if strings.Contains(b.Text, words) {
				found = append(found, regexp.MustCompile(`\bshop\b`).ReplaceAllString(b.Text, w.Namespace))
			}
		}
	}
	if len(found) == 0 {
		w.Fatalf("the pages have no block of %s with %q", language, words)
	}
	return found
}

// bash runs a script of the page, with the kubectl and the kubeconfig of the cluster.
func (w *world) bash(script string) string {
	w.Helper()
	out, err := docs.Reader{Kubeconfig: cluster.Kubeconfig, Path: []string{cluster.Dir()}}.Bash(w.Context(), script)
	if err != nil {
		w.Fatalf("%s\n%s\n%v", script, out, err)
	}
	return out
}

// A Kustomization is moved to the pinned source and back. It must never apply another revision than the running one, although a newer one
// exists.
func TestMigrationPageNeverAppliesWrongRevision(t *testing.T) {
	w := newWorld(t)
	w.commit("v1")
	source := harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps"))
	source.Object["spec"] = map[string]any{"interval": "1h", "url": git.URL(w.Namespace), "ref": map[string]any{"branch": "main"}}
	w.Create(source)
	app := harness.Object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", w.Key("apps"))
	app.Object["spec"] = map[string]any{
		"interval": "1h", "retryInterval": "1s", "prune": true, "path": "./", "sourceRef": map[string]any{"kind": "GitRepository", "name": "apps"},
	}
	w.Create(app)
	w.arrives("v1")
	w.Eventually("the status reports it", func() error {
		if w.Read(app); !strings.Contains(fmt.Sprint(app.Object["status"]), "lastAppliedRevision:main@sha1:"+w.head) {
			return fmt.Errorf("the status is %v", app.Object["status"])
		}
		return nil
	})
	w.Must(w.Merge(app, `{"spec":{"suspend":true}}`)) // otherwise the next commit would be applied before
	second := w.commit("v2")
	w.fetch("apps")
	w.Eventually("v2 is fetched", func() error {
		if got := revisionOf(w.source("GitRepository", "apps")); got != second {
			return fmt.Errorf("the source is at %s", got)
		}
		return nil
	})
	script := w.blocks("sh", "REVISION=$(")[0]
	w.bash(script)
	w.Must(w.Merge(app, `{"spec":{"suspend":null}}`))
	w.g = &v1alpha1.GatedSource{ObjectMeta: metav1.ObjectMeta{Name: "apps", Namespace: w.Namespace}}
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionFalse, "'"+second+"' waits for approval: 0 of 1")
	w.drifts("v1")
	w.Must(w.approve(second))
	w.arrives("v2")
	w.bash(w.blocks("sh", "delete gatedsource")[0])
	w.drifts("v2")
	if err := w.TryRead(harness.Object("source.toolkit.fluxcd.io/v1", "GitRepository", w.Key("apps-gated"))); !apierrors.IsNotFound(err) {
		t.Errorf("the pinned source still exists: %v", err)
	}
}

func TestManifestsOfPageAreAccepted(t *testing.T) {
	w := newWorld(t)
	accepted := 0
	for _, block := range w.blocks("yaml", "apiVersion") {
		path := filepath.Join(t.TempDir(), "manifest.yaml")
		w.Must(os.WriteFile(path, []byte(block), 0o600))
		w.bash("kubectl create -f " + path)
		accepted++
	}
	for _, name := range []string{"gatedsources", "gtsrc"} {
		header := strings.Fields(strings.SplitN(w.bash("kubectl -n "+w.Namespace+" get "+name), "\n", 2)[0])
		page := strings.Fields(strings.Split(w.blocks("console", "get gatedsources")[0], "\n")[1])
		if strings.Join(header, " ") != strings.Join(page, " ") {
			t.Errorf("kubectl prints %v, but the page shows %v", header, page)
		}
	}
	if accepted == 0 {
		t.Error("the page has no manifests")
	}
}

func TestRoleOfPageAllowsGroupToApprove(t *testing.T) {
	w := newWorld(t)
	may := "kubectl -n " + w.Namespace + " auth can-i approve gatedsources --as=anna --as-group=sre || true"
	if out := w.bash(may); !strings.Contains(out, "no") {
		t.Fatalf("allowed without the binding: %s", out)
	}
	w.bash(w.blocks("sh", "create rolebinding")[0])
	w.Eventually("sre may approve", func() error {
		if out := w.bash(may); strings.TrimSpace(out) != "yes" {
			return errors.New(out)
		}
		return nil
	})
}

func TestApproveReportsPromotion(t *testing.T) {
	w := newWorld(t)
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(cluster.Dir(), "kubectl-gate"), "./cmd/kubectl-gate")
	build.Dir = harness.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	w.follow(v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	first := "main@sha1:" + w.head
	w.sees(first)
	command := func(args string) string {
		return "kubectl-gate approve -n " + w.Namespace + " source/apps " + args + " 2>&1 || true"
	}
	for args, want := range map[string]string{
		"": "specify the revision that you approve: kubectl gate approve", "--revision main": "the status of the source does not list main", "--generation 3": "--generation is for exception/NAME",
		"--dry-run=server --revision " + first: "the API server would accept this (dry run)",
	} {
		if out := w.bash(command(args)); !strings.Contains(out, want) {
			t.Errorf("approve %s prints\n%s, want %s", args, out, want)
		}
	}
	if w.Read(w.g); w.g.Status.Pinned != nil {
		t.Fatal("the revision is approved")
	}
	artifact, err := url.Parse(urlOf(w.source("GitRepository", "apps")))
	w.Must(err)
	pending := w.bash(strings.TrimSpace(w.blocks("sh", "gate pending")[0]) + " --source-address=http://" + artifact.Host)
	for _, want := range []string{"approval 0 of 1", "  Kustomization/apps in " + w.Namespace + "\n    ConfigMap/" + w.Namespace + "/app created\n"} {
		if !strings.Contains(pending, want) {
			t.Errorf("want %q, it prints\n%s", want, pending)
		}
	}
	if out := w.bash(command("--revision " + first + " --reason 'seen in staging'")); !strings.Contains(out, "approved by admin, pinned to "+first) {
		t.Errorf("got output\n%s", out)
	}
	w.arrives("v1")
	if p := w.g.Status.Promotions; w.g.Status.Pinned != nil && (len(p) != 1 || p[0].Approvals[0].Message != "seen in staging") {
		t.Errorf("promotions: %+v", p)
	}
	history, _, _ := strings.Cut(w.blocks("sh", "gate history")[0], "\n")
	if out := w.bash(history); !strings.Contains(out, first) || !strings.Contains(out, "admin") || !strings.Contains(out, "seen in staging") {
		t.Errorf("got output\n%s", out)
	}
	if out := w.bash(command("")); !strings.Contains(out, "no revision is waiting") {
		t.Errorf("got output\n%s", out)
	}
}
