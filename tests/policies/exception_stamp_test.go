package policies

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestExceptionNamesAllAuthors(t *testing.T) {
	w := newWorld(t)
	ona, edith, clara := w.as("ona", exceptionEditor, viewer), w.as("edith", exceptionEditor, viewer), w.clusterAdmin()
	lies := map[string]string{authors: "bob", approveBy: "1 alice\n1 bob", "a": "b"}
	for command, annotations := range map[string]map[string]string{
		"create": nil, "apply": lies, "apply --server-side": {}, "apply --server-side --field-manager=gating-controller": {authors: "", approveBy: "", "a": "b"},
	} {
		w.allowed(ona, append(strings.Fields(command), "-f", exceptionFile("hotfix", "", annotations))...)
		w.stampedException("hotfix", "ona", "")
		w.is("the other annotation after "+command, w.exception("hotfix").Annotations["a"], annotations["a"])
		w.allowed(ona, "delete gtex hotfix")
	}
	w.allowed(ona, "create", "-f", strings.Replace(exceptionFile("null", `{"default":"closed"}`, nil), `"metadata":{`, `"metadata":{"annotations":null,`, 1))
	w.stampedException("null", "ona", "")
	w.stampedException(w.allowed(ona, "create", "-o=name", "-f", exceptionFile("generateName: hotfix-", `{"gateRef":{"name":"x"}}`, lies)), "ona", "")

	w.createException(ona, "hotfix", "", nil)
	for _, step := range []struct {
		p       *person
		args    []string
		authors string
	}{
		{ona, ttl("1h"), "ona"},
		{edith, []string{"label gtex hotfix a=b"}, "ona"},
		{edith, []string{"annotate gtex hotfix a=b"}, "ona"},
		{edith, ttl("1h"), "ona"}, // no change
		{edith, ttl("2h"), "ona\nedith"},
		{ona, ttl("1h"), "ona\nedith"},
		{edith, ttl("3h"), "ona\nedith"},
		{clara, []string{"apply --server-side --force-conflicts -f " + exceptionFile("hotfix", `{"ttlAfterExpired":"4h"}`, nil)}, "ona\nedith\nclara"},
	} {
		w.allowed(step.p, step.args...)
		w.stampedException("hotfix", step.authors, "")
	}
	w.allowed(clara, "delete gtex hotfix")
	w.createException(edith, "hotfix", "", nil)
	w.stampedException("hotfix", "edith", "")
}

// An approver and an author write false values into the stamps. The API server and the controller must ignore them.
func TestForgeriesApproveNothing(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(2)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	both := w.as("beth", exceptionEditor, exceptionApprover)
	spec := opens(1)
	w.createException(ona, "hotfix", spec, map[string]string{authors: "alice", approveBy: "1 alice"})
	w.allowed(alice, w.approval("--dry-run=server")...)
	w.stampedException("hotfix", "ona", "")
	w.allowed(alice, w.approval(authors+"=alice", approveBy+"="+w.lines("1 bob"))...)
	w.stampedException("hotfix", "ona", "1 alice")
	at, forged := w.exception("hotfix").Annotations[approveAt], strings.ReplaceAll(w.lines("1 alice\n1 bob"), "\n", `\n`)
	jsonPatch := "--type=json"
	for _, p := range []*person{ona, alice, both, w.clusterAdmin()} {
		for _, args := range [][]string{
			{"annotate --overwrite gtex hotfix " + authors + "=nobody"}, {"annotate gtex hotfix " + authors + "-"},
			{"annotate --overwrite gtex hotfix " + approveBy + "=nobody"}, {"annotate gtex hotfix " + approveBy + "-"},
			{"annotate --overwrite gtex hotfix " + authors + "= " + approveBy + "="},
			{`patch gtex hotfix --type=merge -p {"metadata":{"annotations":{"` + authors + `":null,"` + approveBy + `":null}}}`},
			{"patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"` + approveBy + `":"` + forged +
				`"}},"status":{"approvals":[{"approvedBy":"alice","recordedAt":"2026-11-21T16:41:57Z","generation":1}]}}`},
			{"patch", "gtex", "hotfix", jsonPatch, "-p", `[{"op":"remove","path":"/metadata/annotations/approve.gate.fluxcd.io~1authors"}]`},
			{"patch", "gtex", "hotfix", jsonPatch, "-p", `[{"op":"replace","path":"/metadata/annotations/approve.gate.fluxcd.io~1authors","value":"bob\nalice"}]`},
			{"patch", "gtex", "hotfix", jsonPatch, "-p", `[{"op":"add","path":"/metadata/annotations/approve.gate.fluxcd.io~1requestedBy","value":"` + forged + `"}]`},
			{"patch", "gtex", "hotfix", jsonPatch, "-p", `[{"op":"add","path":"/metadata/annotations","value":{"` + approveAt + `":"` + at + `","` + authors + `":"x","` + approveBy + `":"` + forged + `"}}]`},
		} {
			w.allowed(p, args...)
			w.stampedException("hotfix", "ona", "1 alice")
		}
	}
	for _, command := range []string{"apply --server-side --force-conflicts --field-manager=gating-controller", "apply --server-side --force-conflicts"} {
		for _, annotations := range []map[string]string{{approveAt: at, authors: "bob", approveBy: w.lines("1 bob")}, {approveAt: at}, nil} {
			w.allowed(both, append(strings.Fields(command), "-f", exceptionFile("hotfix", spec, annotations))...)
			w.stampedException("hotfix", "ona", "1 alice")
		}
	}
	for _, command := range []string{
		`patch gtex hotfix --type=json -p [{"op":"remove","path":"/metadata/annotations"}]`, "replace -f " + exceptionFile("hotfix", spec, nil), "apply -f " + exceptionFile("hotfix", spec, nil),
	} {
		w.allowed(ona, command)
		w.stampedException("hotfix", "ona", "1 alice")
	}
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "alice")
}

// Each name is on one line: a line break in it must not start another line.
func TestUserNameForgesNoLine(t *testing.T) {
	w := newWorld(t)
	author := w.as("ona\nx", exceptionEditor, exceptionApprover)
	w.createException(author, "hotfix", "", nil)
	w.stampedException("hotfix", "ona x", "")
	w.refused(author, "user ona x wrote gate exception "+w.Namespace+"/hotfix: another user must approve it", w.approval()...)
	forger := w.as("bob\n"+w.lines("1 carl"), exceptionApprover)
	for range 2 {
		w.allowed(forger, w.approval()...)
		w.stampedException("hotfix", "ona x", "1 bob "+w.lines("1 carl"))
	}
	w.allowed(author, ttl("1h")...)
	w.stampedException("hotfix", "ona x", "1 bob "+w.lines("1 carl"))
}

// Without the policy that stamps, the check refuses every write that needs a stamp.
func TestUnstampedObjectsAreRefused(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.createException(ona, "hotfix", "", nil)
	other := "create --dry-run=server -f " + exceptionFile("other", `{"gateRef":{"name":"x"}}`, nil)
	const cause = " has authors or approvers that are not stamped: the MutatingAdmissionPolicy gate-exception-stamp must be installed"
	w.without("gate-exception-stamp", []string{mutating}, func() {
		w.until("no policy stamps exceptions", func() (bool, any) {
			out, err := ona.kubectl(w.Context(), w.Namespace, other)
			return err != nil && strings.Contains(out, "gate exception "+w.Namespace+"/other"+cause), out
		})
		for _, args := range [][]string{
			w.approval(), w.approval(approveBy + "=" + w.lines("1 bob")), w.approval(approveBy+"="+w.lines("1 alice\n1 bob"), authors+"=ona"),
			{"annotate --overwrite gtex hotfix " + authors + "=bob"}, {"annotate gtex hotfix " + authors + "-"},
		} {
			w.refused(alice, cause, args...)
		}
		w.refused(ona, cause, "annotate", "gtex", "hotfix", approveBy+"="+w.lines("1 alice"))
		w.allowed(ona, "label gtex hotfix a=b")
		w.allowed(ona, ttl("1h")...) // its author has not changed
		w.stampedException("hotfix", "ona", "")
	})
	w.Eventually("exceptions are stamped again", func() error {
		_, err := ona.kubectl(w.Context(), w.Namespace, other)
		return err
	})
}

// The authors of an exception that is older than the policies are unknown.
func TestExceptionCreatedBeforePoliciesIsNotApproved(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	beth, alice, edith := w.as("beth", exceptionEditor, exceptionApprover, viewer), w.as("alice", exceptionApprover), w.as("edith", exceptionEditor, viewer)
	w.without("gate-exception-stamp", []string{mutating, validating}, func() {
		w.Eventually("no policy stamps exceptions", func() error {
			_, err := beth.kubectl(w.Context(), w.Namespace, "create", "-f", exceptionFile("hotfix", opens(1), nil))
			if err == nil && w.exception("hotfix").Annotations[authors] != "" {
				w.allowed(beth, "delete gtex hotfix")
				return errors.New("the exception is stamped")
			}
			return err
		})
	})
	w.until("exceptions are stamped again", func() (bool, any) {
		out, err := beth.kubectl(w.Context(), w.Namespace, "create --dry-run=server -o=yaml -f "+exceptionFile("other", `{"gateRef":{"name":"x"}}`, nil))
		return err == nil && strings.Contains(out, authors), out
	})
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(beth, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"`+authors+`":"alice","`+approveBy+`":"`+w.lines("1 alice")+`"}}}`)
	w.stampedException("hotfix", "", "")
	unknown := " may not approve gate exception " + w.Namespace + "/hotfix: it is older than the policy gate-exception-stamp, so its authors are unknown; delete it and create it again"
	for _, p := range []*person{beth, alice} {
		w.refused(p, "user "+p.Name+unknown, w.approval()...)
	}
	w.allowed(edith, ttl("1h")...) // otherwise, one of two authors would be known
	w.stampedException("hotfix", "", "")
	w.refused(alice, "user alice"+unknown, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(beth, "replace", "--force", "-f", exceptionFile("hotfix", opens(1), nil))
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

// Both policies must contain the same expressions: one sets the stamps, the other checks them.
func TestStampPoliciesAgree(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(harness.Root(), "config", "policies", "exception_stamp.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]admissionv1.Variable{}
	for _, document := range strings.Split(string(content), "\n---\n") {
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		if err := yaml.Unmarshal([]byte(document), policy); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(policy.Kind, "Policy") {
			found[policy.Kind] = policy.Spec.Variables
		}
	}
	stamps, check := found["MutatingAdmissionPolicy"], found["ValidatingAdmissionPolicy"]
	if len(check) < 5 || len(stamps) != len(check)+1 {
		t.Fatalf("%d and %d variables", len(stamps), len(check))
	}
	for i := range check {
		if check[i] != stamps[i] {
			t.Errorf("got %q, want %q", check[i], stamps[i])
		}
	}
}

// Names may be long, and there may be many. The cost limit of policies must allow that.
func TestManyAuthorsAndApproversAreStamped(t *testing.T) {
	w := newWorld(t)
	const many = 40
	wantAuthors, wantApprovals := []string{"ona"}, []string{}
	w.createException(w.as("ona", exceptionEditor, viewer), "hotfix", "", nil)
	write := func(kind, name, patch string) {
		w.Helper()
		config := rest.CopyConfig(cluster.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:masters"}}
		as, err := dynamic.NewForConfig(config)
		w.Must(err)
		_, err = as.Resource(gateExceptions).Namespace(w.Namespace).Patch(w.Context(), "hotfix", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: kind})
		w.Must(err)
	}
	for i := range many {
		name := fmt.Sprintf("author-%d-%s", i, strings.Repeat("x", 300))
		write("author", name, fmt.Sprintf(`{"spec":{"ttlAfterExpired":"%dh"}}`, i+1))
		wantAuthors = append(wantAuthors, name)
	}
	for i := range many {
		name := fmt.Sprintf("approver-%d-%s", i, strings.Repeat("x", 300))
		write("approver", name, fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, approveAt, w.approvalOf("hotfix")))
		wantApprovals = append(wantApprovals, fmt.Sprintf("%d %s", many+1, name))
	}
	w.stampedException("hotfix", strings.Join(wantAuthors, "\n"), strings.Join(wantApprovals, "\n"))
}
