package policies

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// ttl returns the arguments that change the spec of the exception hotfix.
func ttl(value string) []string {
	return []string{"patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":"` + value + `"}}`}
}

func TestAnExceptionNamesAllWhoWroteIt(t *testing.T) {
	w := newWorld(t)
	ona, edith := w.as("ona", exceptionEditor, viewer), w.as("edith", exceptionEditor, viewer)
	w.born(ona, "hotfix", "", nil)
	w.stampedException("hotfix", "ona", "")
	w.allowed(ona, ttl("1h")...)
	w.stampedException("hotfix", "ona", "")
	w.allowed(edith, "label", "gtex", "hotfix", "a=b")
	w.allowed(edith, "annotate", "gtex", "hotfix", "a=b")
	w.allowed(edith, ttl("1h")...) // as it is
	w.stampedException("hotfix", "ona", "")
	w.allowed(edith, ttl("2h")...)
	w.stampedException("hotfix", "ona\nedith", "")
	w.allowed(ona, ttl("1h")...)
	w.allowed(edith, ttl("3h")...)
	w.stampedException("hotfix", "ona\nedith", "")
	clara := w.clusterAdmin()
	w.allowed(clara, "apply", "--server-side", "--force-conflicts", "-f", w.except("hotfix", `{"ttlAfterExpired":"4h"}`, nil))
	w.stampedException("hotfix", "ona\nedith\nclara", "")
	w.allowed(clara, "delete", "gtex", "hotfix")
	w.born(edith, "hotfix", "", nil)
	w.stampedException("hotfix", "edith", "")
}

func TestWhoCreatesAnExceptionIsItsAuthorNotWhoIsNamed(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	lies := map[string]string{authors: "bob", approveBy: "1 alice\n1 bob"}
	for name, annotations := range map[string]map[string]string{"none": nil, "empty": {}, "lies": lies, "another": {"a": "b"}, "empty-ones": {authors: "", approveBy: ""}} {
		for _, command := range []string{"create", "apply", "apply --server-side", "apply --server-side --field-manager=gating-controller"} {
			args := append(strings.Fields(command), "-f", w.except("hotfix", "", annotations))
			w.allowed(ona, args...)
			w.stampedException("hotfix", "ona", "")
			if got := w.exception("hotfix").Annotations["a"]; got != annotations["a"] {
				t.Errorf("%s, %s: the other annotation is %q", name, command, got)
			}
			w.allowed(ona, "delete", "gtex", "hotfix")
		}
	}
	w.allowed(ona, "create", "-f", w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateException","metadata":{"name":"null","annotations":null},`+
		`"spec":{"gateRef":{"name":"x"},"default":"closed","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-02T00:00:00Z"}}`))
	w.stampedException("null", "ona", "")
	name := strings.TrimSpace(w.allowed(ona, "create", "-o=jsonpath={.metadata.name}", "-f", w.except("generateName: hotfix-", "", lies)))
	w.stampedException(name, "ona", "")
}

func TestTheStampsOfAnExceptionAreThoseOfTheAPIServer(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	both := w.as("beth", exceptionEditor, exceptionApprover)
	w.born(ona, "hotfix", "", nil)
	w.allowed(alice, w.approval(authors+"=alice", approveBy+"="+w.lines("1 bob"))...)
	w.stampedException("hotfix", "ona", "1 alice")

	merge := "patch gtex hotfix --type=merge -p "
	for _, p := range []*person{ona, alice, both, w.clusterAdmin()} {
		for _, args := range []string{
			"annotate --overwrite gtex hotfix " + authors + "=nobody", "annotate gtex hotfix " + authors + "-",
			"annotate --overwrite gtex hotfix " + approveBy + "=nobody", "annotate gtex hotfix " + approveBy + "-",
			"annotate --overwrite gtex hotfix " + authors + "= " + approveBy + "=",
			merge + `{"metadata":{"annotations":{"` + authors + `":null,"` + approveBy + `":null}}}`,
			`patch gtex hotfix --type=json -p [{"op":"remove","path":"/metadata/annotations/approve.gate.fluxcd.io~1authors"}]`,
			`patch gtex hotfix --type=json -p [{"op":"replace","path":"/metadata/annotations/approve.gate.fluxcd.io~1authors","value":"bob\nalice"}]`,
			`patch gtex hotfix --type=json -p [{"op":"add","path":"/metadata/annotations/approve.gate.fluxcd.io~1requestedBy","value":"` +
				strings.NewReplacer("\n", `\n`, " ", `\u0020`).Replace(w.lines("1 alice\n1 bob")) + `"}]`,
		} {
			w.allowed(p, strings.Fields(args)...)
			w.stampedException("hotfix", "ona", "1 alice")
		}
	}
	at := w.exception("hotfix").Annotations[approveAt]
	// All annotations but the approval itself.
	for _, annotations := range []string{`{"` + approveAt + `":"` + at + `"}`, `{"` + approveAt + `":"` + at + `","` + authors + `":"x","` + approveBy + `":"` + w.lines("1 x") + `"}`} {
		patch := []byte(`[{"op":"add","path":"/metadata/annotations","value":` + annotations + `}]`)
		w.Must(ona.Client.Patch(w.Context(), w.exception("hotfix"), client.RawPatch(types.JSONPatchType, patch)))
		w.stampedException("hotfix", "ona", "1 alice")
	}
	e := w.exception("hotfix")
	w.Must(w.Rewrite(e, func() error {
		e.Annotations = map[string]string{approveAt: at, authors: "x"}
		return ona.Client.Update(w.Context(), e)
	}))
	w.stampedException("hotfix", "ona", "1 alice")
	for _, annotations := range []map[string]string{{approveAt: at, authors: "bob", approveBy: w.lines("1 bob")}, {approveAt: at}} {
		for _, manager := range []string{"kustomize-controller", "gating-controller"} {
			w.allowed(both, "apply", "--server-side", "--force-conflicts", "--field-manager="+manager, "-f", w.except("hotfix", "", annotations))
			w.stampedException("hotfix", "ona", "1 alice")
		}
	}
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations"}]`)
	w.stampedException("hotfix", "ona", "1 alice")
	w.allowed(ona, "replace", "-f", w.except("hotfix", "", nil))
	w.allowed(ona, "apply", "-f", w.except("hotfix", "", nil))
	w.stampedException("hotfix", "ona", "1 alice")
}

// Flux applies what is in Git, again and again, without the stamps.
func TestTheStampsOutliveServerSideApply(t *testing.T) {
	w := newWorld(t)
	flux, alice := w.as("flux", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	apply := func(p *person, spec string) {
		w.Helper()
		w.allowed(p, "apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", w.except("hotfix", spec, map[string]string{"a": "b"}))
	}
	apply(flux, "")
	apply(flux, "")
	w.stampedException("hotfix", "flux", "")
	w.allowed(alice, w.approval()...)
	w.Eventually("the controller is done, and what Flux applies changes nothing", func() error {
		before := w.exception("hotfix").ResourceVersion
		apply(flux, "")
		if after := w.exception("hotfix").ResourceVersion; after != before {
			return fmt.Errorf("version %s, was %s", after, before)
		}
		return nil
	})
	w.stampedException("hotfix", "flux", "1 alice")
	apply(flux, `{"ttlAfterExpired":"1h"}`)
	w.stampedException("hotfix", "flux", "1 alice") // void, see the generation
	w.allowed(alice, w.approval()...)
	w.stampedException("hotfix", "flux", "2 alice")
}

func TestApprovalsAreAddedUp(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	alice, bob := w.as("alice", exceptionApprover), w.as("bob", exceptionApprover)
	odd := w.as("3 bob", exceptionApprover)
	w.born(ona, "hotfix", "", nil)
	w.allowed(alice, w.approval()...)
	w.allowed(alice, w.approval()...)
	w.stampedException("hotfix", "ona", "1 alice")
	w.allowed(bob, w.approval()...)
	w.allowed(odd, w.approval()...)
	w.allowed(alice, w.approval()...)
	w.stampedException("hotfix", "ona", "1 alice\n1 bob\n1 3 bob")
	w.allowed(bob, "annotate", "--overwrite", "gtex", "hotfix", "reconcile.fluxcd.io/requestedAt=1")
	w.allowed(ona, "label", "gtex", "hotfix", "a=b")
	w.stampedException("hotfix", "ona", "1 alice\n1 bob\n1 3 bob")

	// An edit: those are of another generation, and gone with the next.
	w.allowed(ona, ttl("1h")...)
	w.allowed(bob, w.approval()...)
	w.stampedException("hotfix", "ona", "2 bob")
	w.allowed(alice, "annotate", "gtex", "hotfix", approveAt+"-")
	w.stampedException("hotfix", "ona", "2 bob")
}

func TestTheStatusAndDryRunsApproveNothing(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	account := w.as("system:serviceaccount:gating-system:gating-controller", w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	w.born(ona, "hotfix", "", nil)
	w.allowed(alice, append(w.approval(), "--dry-run=server")...)
	w.stampedException("hotfix", "ona", "")
	lies := `{"metadata":{"annotations":{"` + approveAt + `":"` + w.approvalOf("hotfix") + `","` + authors + `":"bob","` + approveBy + `":"` + w.lines("1 alice") + `"}},"status":{"observedGeneration":1}}`
	w.allowed(account, "patch", "gtex", "hotfix", "--subresource=status", "--type=merge", "-p", lies)
	w.stampedException("hotfix", "ona", "")
	if a := w.exception("hotfix").Annotations; len(a) != 1 {
		t.Errorf("annotations %v", a)
	}
}

// A name is a line, and nothing in it makes two of it.
func TestAUserNameForgesNoLine(t *testing.T) {
	w := newWorld(t)
	author := w.as("ona\nx", exceptionEditor, exceptionApprover)
	w.born(author, "hotfix", "", nil)
	w.stampedException("hotfix", "ona x", "")
	w.refusedException(author, "hotfix", "user ona x wrote gate exception "+w.Namespace+"/hotfix: somebody else has to approve it", w.approval()...)
	forger := w.as("bob\n"+w.lines("1 carl"), exceptionApprover)
	w.allowed(forger, w.approval()...)
	w.allowed(forger, w.approval()...)
	w.stampedException("hotfix", "ona x", "1 bob "+w.lines("1 carl"))
	w.allowed(author, ttl("1h")...)
	w.stampedException("hotfix", "ona x", "1 bob "+w.lines("1 carl"))
}

// The other way to be stamped is none at all.
func TestWhatIsNotStampedIsRefused(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", "", nil)
	_, err := cluster.Kubectl(w.Context(), "delete", "mutatingadmissionpolicybinding", "gate-exception-stamp")
	w.Must(err)
	defer func() {
		_, err := cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join(harness.Root(), "config", "policies", "exception_stamp.yaml"))
		w.Must(err)
		w.Eventually("the stamps are back", func() error {
			_, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "create", "--dry-run=server", "-f", w.except("other", `{"gateRef":{"name":"x"}}`, nil))
			return err
		})
	}()
	const cause = " does not say who wrote and approved it: the MutatingAdmissionPolicy gate-exception-stamp has to be in force"
	w.Eventually("nobody stamps", func() error {
		out, err := ona.kubectl(w.Context(), w.Namespace, "create", "--dry-run=server", "-f", w.except("other", `{"gateRef":{"name":"x"}}`, nil))
		if err == nil || !strings.Contains(out, "gate exception "+w.Namespace+"/other"+cause) {
			return fmt.Errorf("got %s, %w", out, err)
		}
		return nil
	})
	for _, args := range [][]string{
		w.approval(), w.approval(approveBy + "=" + w.lines("1 bob")), w.approval(approveBy+"="+w.lines("1 alice\n1 bob"), authors+"=ona"),
		{"annotate", "--overwrite", "gtex", "hotfix", authors + "=bob"}, {"annotate", "gtex", "hotfix", authors + "-"},
	} {
		w.refusedException(alice, "hotfix", cause, args...)
	}
	w.refusedException(ona, "hotfix", cause, "annotate", "gtex", "hotfix", approveBy+"="+w.lines("1 alice"))
	w.allowed(ona, "label", "gtex", "hotfix", "a=b")
	w.allowed(ona, ttl("1h")...) // the author as before
	w.stampedException("hotfix", "ona", "")
}

// An exception from before the policies may say what it likes of who wrote it.
func TestNobodyApprovesWhatNobodyKnowsTheAuthorOf(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	edith := w.as("edith", exceptionEditor, viewer)
	unstamped(w, func() { w.bornUnstamped(ona, "") })
	w.stampedException("hotfix", "", "")
	cause := "user alice may not approve gate exception " + w.Namespace + "/hotfix: it is older than the policy gate-exception-stamp, so its authors are unknown; delete it and create it again"
	w.refusedException(alice, "hotfix", cause, w.approval()...)
	w.allowed(edith, ttl("1h")...) // of two authors, one would be known
	w.stampedException("hotfix", "", "")
	w.refusedException(alice, "hotfix", cause, w.approval()...)
	w.allowed(ona, "replace", "--force", "-f", w.except("hotfix", "", nil))
	w.allowed(alice, w.approval()...)
	w.stampedException("hotfix", "ona", "1 alice")
}

// bornUnstamped has a person create the exception hotfix before anybody stamps it.
func (w *world) bornUnstamped(p *person, spec string) {
	w.Helper()
	w.Eventually("nobody stamps", func() error {
		_, err := p.kubectl(w.Context(), w.Namespace, "create", "-f", w.except("hotfix", spec, nil))
		if err == nil && w.exception("hotfix").Annotations[authors] != "" {
			w.allowed(p, "delete", "gtex", "hotfix")
			return errors.New("it is stamped")
		}
		return err
	})
}

// unstamped does something while exceptions are neither stamped nor checked.
func unstamped(w *world, do func()) {
	w.Helper()
	for _, kind := range []string{"mutatingadmissionpolicybinding", "validatingadmissionpolicybinding"} {
		_, err := cluster.Kubectl(w.Context(), "delete", kind, "gate-exception-stamp")
		w.Must(err)
	}
	defer func() {
		_, err := cluster.Kubectl(w.Context(), "apply", "-f", filepath.Join(harness.Root(), "config", "policies", "exception_stamp.yaml"))
		w.Must(err)
		w.Eventually("the stamps are back", func() error {
			out, err := cluster.Kubectl(w.Context(), "-n", w.Namespace, "create", "--dry-run=server", "-o=yaml", "-f", w.except("other", `{"gateRef":{"name":"x"}}`, nil))
			if err == nil && !strings.Contains(out, authors) {
				err = fmt.Errorf("got %s", out)
			}
			return err
		})
	}()
	do()
}

// The API server checks what it stamps: the same text twice.
func TestTheTwoPoliciesOfStampsAgree(t *testing.T) {
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
			t.Errorf("%q is not %q", check[i], stamps[i])
		}
	}
}

// Names are long and many; the request must not cost too much for that.
func TestManyAuthorsAndApproversAreStamped(t *testing.T) {
	w := newWorld(t)
	const many = 40
	scheme, err := harness.Scheme()
	w.Must(err)
	wantAuthors, wantApprovals := []string{"ona"}, []string{}
	w.born(w.as("ona", exceptionEditor, viewer), "hotfix", "", nil)
	for _, kind := range []string{"author", "approver"} {
		for i := range many {
			config := rest.CopyConfig(cluster.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("%s-%d-%s", kind, i, strings.Repeat("x", 300)), Groups: []string{"system:masters"}}
			c, err := client.New(config, client.Options{Scheme: scheme, Mapper: cluster.Client.RESTMapper()})
			w.Must(err)
			patch := fmt.Sprintf(`{"spec":{"ttlAfterExpired":"%dh"}}`, i+1)
			if kind == "approver" {
				patch = fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, approveAt, w.approvalOf("hotfix"))
				wantApprovals = append(wantApprovals, fmt.Sprintf("%d %s", many+1, config.Impersonate.UserName))
			} else {
				wantAuthors = append(wantAuthors, config.Impersonate.UserName)
			}
			w.Must(c.Patch(w.Context(), w.exception("hotfix"), client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(kind)))
		}
	}
	w.stampedException("hotfix", strings.Join(wantAuthors, "\n"), strings.Join(wantApprovals, "\n"))
}
