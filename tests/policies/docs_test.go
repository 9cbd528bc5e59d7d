package policies

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// secure are the pages of docs/secure with commands, in the order in which a reader runs them. tests/lock runs the page on the lock.
var secure = []string{"roles", "approvals", "webhooks", "permissions", "tenants"}

// blocks returns the code blocks of the pages in a language, and all text of the pages with white space collapsed.
func blocks(t *testing.T, language string) (found []string, text string) {
	t.Helper()
	for _, page := range secure {
		content := markdown.Page(t, "docs/secure/"+page+".md")
		for _, b := range markdown.Blocks(content, language) {
			found = append(found, b.Text)
		}
		text += strings.Join(strings.Fields(content), " ") + " "
	}
	return found, text
}

// documented returns the world of the docs: the Gate production in flux-system.
func documented(t *testing.T) (*world, *v1alpha1.Gate) {
	t.Helper()
	w := newWorld(t)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace, "docs-away")
	return w, w.gate("production")
}

func TestSecurityPagesCommandsWork(t *testing.T) {
	w, g := documented(t)
	commands, _ := blocks(t, "sh")
	alice := &person{w.Person("alice-of-sre", "sre")}
	output := ""
	for _, command := range commands {
		if strings.Contains(command, "sed ") { // the tests keep their account
			command = strings.Replace(command, "kubectl apply", "kubectl apply --dry-run=server", 1)
		}
		for i, day := range []string{"2026-12-24", "2026-12-25"} { // independent of the current date
			command = strings.ReplaceAll(command, `"`+day+`T`, `"`+time.Now().UTC().AddDate(0, 0, i+1).Format(time.DateOnly)+"T")
		}
		who := cluster.Kubeconfig
		if strings.Contains(command, approveAt+"=") { // after the last write of the controller
			who = alice.Kubeconfig
			w.reported(g, "hotfix-1234", v1alpha1.WaitingApprovalReason)
		}
		out, err := docs.Reader{Kubeconfig: who, Folder: harness.Root()}.Bash(w.Context(), command)
		if err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		output += out
	}
	// The following tests need the components that the docs delete.
	w.Must(cluster.InstallComponent(w.Context(), "policies"))
	_, err := cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join(harness.Root(), "config", "rbac", "role_binding.yaml"))
	w.Must(err)
	w.mayBy(controllerName, "patch", "gates", v1alpha1.GroupVersion.Group)
	if !strings.Contains(output, "\nyes\n") {
		t.Errorf("alice cannot open: %s", output)
	}
	w.reported(g, "hotfix-1234", v1alpha1.PendingReason, "alice-of-sre")
	olaf, polly := &person{w.Person("olaf-on-call", "on-call")}, &person{w.Person("polly-of-pipelines", "pipelines")}
	w.allowed(olaf, "create -f "+exceptionFile("olafs", "", nil))
	w.refused(olaf, `User "olaf-on-call" cannot patch resource "gates"`, "label gate production a=b")
	w.allowed(polly, "create", "-f", receiverFile("staging", `{"gateRefs":[{"name":"staging"}],"action":null,"actionExpr":"req.ok ? 'open' : 'close'"}`))
	w.refused(polly, "may not create a receiver that opens gate flux-system/production", "create -f "+receiverFile("production", ""))
	w.refused(polly, "no", "auth", "can-i", "patch", "gates.gating.toolkit.fluxcd.io/staging")
	w.allowed(alice, "annotate gate/production "+openAt+"="+now())
	w.decided(g, metav1.ConditionTrue)
}

func TestSecurityPagesManifestsWork(t *testing.T) {
	w, _ := documented(t)
	manifests, _ := blocks(t, "yaml")
	file := filepath.Join(t.TempDir(), "role.yaml")
	w.Must(os.WriteFile(file, []byte(manifests[0]), 0o600))
	_, err := cluster.Kubectl(w.Context(), "apply", "-f", file)
	w.Must(err)
	_, err = admin.kubectl(w.Context(), w.Namespace, "create", "rolebinding", "nils", "--role=open-production", "--user=nils")
	w.Must(err)
	nils := w.as("nils")
	w.mayBy("nils", "open", "gates", v1alpha1.GroupVersion.Group)
	w.allowed(nils, "annotate", "--overwrite", "gate/production", openAt+"="+now())

	for _, c := range []struct {
		manifest, kind, name, text string
		has                        bool
	}{
		{manifests[1], "Deployment", "gating-controller", "- --no-cross-namespace-refs=false\n", true},
		{manifests[2], "ClusterRole", "gate-editor", "aggregate-to", false},
	} {
		if document := w.rendered(c.manifest, c.kind, c.name); strings.Contains(document, c.text) != c.has {
			t.Errorf("contains %q: %v, want %v\n%s", c.text, !c.has, c.has, document)
		}
	}
}

// rendered returns an object that kustomize builds from a kustomization.yaml next to config.
func (w *world) rendered(kustomization, kind, name string) string {
	w.Helper()
	dir := w.TempDir()
	w.Must(os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	w.Must(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600))
	out, err := harness.Kustomize(dir)
	w.Must(err)
	for _, document := range strings.Split(out, "\n---\n") {
		if strings.Contains(document, "kind: "+kind+"\n") && strings.Contains(document, "\n  name: "+name+"\n") {
			return document
		}
	}
	w.Fatalf("no %s %s in\n%s", kind, name, out)
	return ""
}

func TestSecurityPagesShowRefusals(t *testing.T) {
	w, _ := documented(t)
	_, text := blocks(t, "sh")
	edith := w.as("edith", editor, viewer)
	for args, p := range map[string]*person{
		"annotate --overwrite gate/production " + openAt + "=2020-01-01T00:00:00Z":                                edith,
		"create -f " + holdFile("freeze", `{"targets":[{"kind":"Kustomization","name":"*","namespace":"shop"}]}`): edith,
		"create -f " + receiverFile("ci", ""):                                                                     w.as("rita", receiverEditor),
	} {
		out, err := p.kubectl(w.Context(), w.Namespace, args)
		if want := strings.Join(strings.Fields(out), " "); err == nil || !strings.Contains(text, want) {
			t.Errorf("no page contains\n%s", out)
		}
	}
}

// docs/guides/approve-an-exception.md has the messages of the controller and the API server about approvals.
func TestExceptionApprovalsPage(t *testing.T) {
	w, g := documented(t)
	page := strings.Join(strings.Fields(markdown.Page(t, "docs/guides/approve-an-exception.md")), " ")
	alice, bob := w.as("alice", exceptionEditor, viewer), w.as("bob", exceptionApprover)
	w.allowed(admin, `patch gate production --type=merge -p {"spec":{"approvals":{"exceptions":{"required":2}}}}`)
	e := w.createException(alice, "hotfix", opens(1), nil)
	has := func(out string) {
		w.Helper()
		want := strings.ReplaceAll(strings.Join(strings.Fields(out), " "), string(e.UID), "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55")
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks\n%s", want)
		}
	}
	w.allowed(bob, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "bob")
	described := w.allowed(bob, "describe", "gateexception", "hotfix")
	message := regexp.MustCompile(`Message: +Exception waits .* to approve .*`).FindString(described)
	if !command.MatchString(message) {
		t.Errorf("no command in\n%s", described)
	}
	has(message)
	seen := w.approvalOf("hotfix")
	w.allowed(alice, ttl("1h")...)
	for p, value := range map[*person]string{bob: seen, w.as("alice", exceptionApprover): w.approvalOf("hotfix")} {
		out, err := p.kubectl(w.Context(), w.Namespace, annotated(value)...)
		if err == nil {
			t.Errorf("%s approves: %s", p.Name, out)
		}
		has(out)
	}
}
