package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// guarded starts a control plane with config/policies, because the policies would affect other tests.
func guarded(t *testing.T, args ...string) *harness.ControlPlane {
	t.Helper()
	c, err := harness.StartControlPlane(harness.CRDs...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	err = errors.Join(c.Install(t.Context()), c.InstallComponent(t.Context(), "policies"))
	if err != nil {
		t.Fatal(err)
	}
	controller, err := c.StartGatingController(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = controller.Stop() })
	return c
}

// inForce waits until the policies are enforced: the stamps, the verbs, and exceptions that overlap.
func (w *world) inForce() {
	w.Helper()
	at := func(name string) string {
		return `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateException","metadata":{"name":"` + name +
			`"},"spec":{"gateRef":{"name":"probe"},"default":"opened","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-02T00:00:00Z"}}`
	}
	prints := func(want, command string) {
		w.Helper()
		w.Eventually(want, func() error {
			if got := w.shell(command); !strings.Contains(got.out+got.errOut, want) {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}
	prints(v1alpha1.AuthorsAnnotation, "echo '"+at("probe")+"' | kubectl create -f - --dry-run=server -o yaml")
	prints("created", "echo '"+at("probe")+"' | kubectl create -f -")
	prints("gate-exception-overlap", "echo '"+at("other")+"' | kubectl create -f - --dry-run=server")
	prints("gate-exception-verb", "kubectl annotate gtex probe approve.gate.fluxcd.io/requestedAt=x --dry-run=server")
	prints("deleted", "kubectl delete gtex probe")
}

// may binds a ClusterRole to a user in the namespace.
func (w *world) may(who, role string) {
	w.Helper()
	_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "create", "rolebinding", who+"-"+role, "--clusterrole="+role, "--user="+who)
	w.Must(err)
}

// TestWithPolicies runs all tests that need the policies on one control plane.
func TestWithPolicies(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	first := newWorldOn(t, c)
	first.inForce()
	for name, test := range map[string]func(*world){
		"other users approve an exception, and the output shows the number of approvals": approvals,
		"an exception opens a freeze, from the command alone":                            exceptions,
		"the page on approvals matches the output":                                       approvalsPage,
		"the page on approvals of exceptions matches the output":                         exceptionApprovalsPage,
		"the emergency on the page on hotfixes":                                          opensInAnEmergency,
		"permissions to approve":                                                         approvalRights,
		"permissions to write exceptions":                                                exceptRights,
		"permissions to open and close":                                                  requestRights,
		"two people freeze for the same reason, and one thaws":                           sameFreeze,
		"an unhandled request is kept when another one arrives":                          replacesUnhandled,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, c)
			test(w)
		})
	}
}

func approvals(w *world) {
	spec := frozen()
	spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}}
	w.Decided(w.Gate("production", spec))
	for _, who := range []string{"alice", "bob", "carol"} {
		w.may(who, "gate-viewer")
		w.may(who, "gate-exception-editor")
	}
	w.may("alice", "gate-exception-approver")
	w.may("bob", "gate-exception-approver")
	w.may("carol", "gate-exception-approver")
	alice, bob, carol := w.as("alice"), w.as("bob"), w.as("carol")
	w.expect(alice.shell(`kubectl gate exception production --for 1h --name hotfix --reason "hotfix 1234" --apply`), 0, "", "is created, it needs 2 approvals by others: kubectl gate approve exception/hotfix -n "+w.Namespace)
	w.expect(bob.shell("kubectl-gate __complete approve '' 2>/dev/null"), 0, "exception/hotfix\n:4\n", "")
	bob.shows("approve")
	w.expect(alice.gate("approve", "exception/hotfix"), exitError, "", "error: you, alice, wrote it: another user must approve it")
	w.expect(carol.gate("approve", "exception/hotfix"), 0, "approved by carol, 2 of 2 approvals, ", "")
	w.expect(carol.gate("approve", "exception/hotfix"), exitError, "", "error: you, carol, have approved generation 1 already")
	if got := carol.shell("kubectl-gate __complete approve '' 2>/dev/null"); got.out != "exception/\ngate/\nsource/\n:6\n" {
		w.Errorf("an approved exception is completed: %+v", got)
	}
	w.Opened("production", "True")
	_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "patch", "gtex", "hotfix", "--type=merge", `-p={"spec":{"ttlAfterExpired":"1h"}}`)
	w.Must(err)
	w.expect(bob.gate("approve", "exception/hotfix", "--generation=1"), exitError, "generation 2", "error: generation 1 is outdated, the current one is 2")
	w.expect(bob.gate("approve", "exception/hotfix", "--dry-run=server", "-o", "jsonpath={.kind}"), 0, v1alpha1.GateExceptionKind, "  authors    alice, ")
	w.expect(bob.gate("approve", "exception/hotfix"), 0, "approved by bob, 1 of 2 approvals, waits for 1 more", "")
}

func exceptions(w *world) {
	w.Decided(w.Gate("production", frozen()))
	w.may("alice", "gate-viewer")
	w.may("alice", "gate-exception-editor")
	alice := w.as("alice")
	alice.shows("exception")
	w.Opened("production", "True")
	w.expect(alice.gate("exception", "production", "--from=3h", "--for=2h", "--name=dry", "--apply", "--dry-run=server", "-o", "name"), 0,
		"gateexception.gating.toolkit.fluxcd.io/dry", "the API server would accept this (dry run)")
	w.expect(alice.gate("approve", "exception/dry"), exitError, "", "there is no gateexception \"dry\"")
	w.expect(alice.gate("exception", "prodution", "--for=2h"), exitError, "", "did you mean \"production\"?")
	overlaps := alice.gate("exception", "production", "--for=2h", "--name=second", "--apply")
	w.expect(overlaps, exitError, "", "warning: it overlaps with gateexception "+w.Namespace+"/hotfix-1234")
	w.expect(overlaps, exitError, "", "error: refused: gate exception "+w.Namespace+"/second overlaps with gate exception")
}

func approvalRights(w *world) {
	w.Decided(w.Gate("production", frozen()))
	w.may("alice", "gate-viewer")
	w.may("alice", "gate-exception-editor")
	w.expect(w.as("alice").gate("exception", "production", "--for=1h", "--name=hotfix", "--apply"), 0, "", "is created")
	w.needs("approve exception/NAME", func(who *world) output { return who.gate("approve", "exception/hotfix") })
}

// The API server removes a reason that another user has set before, and thaw identifies a freeze by its reason.
func sameFreeze(w *world) {
	w.Decided(w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened}))
	for _, who := range []string{"fred", "ginger"} {
		w.may(who, "gate-opener")
		w.expect(w.as(who).gate("freeze", "--for=1h", "--reason=incident 77"), 0, "closed, close request", "")
	}
	w.expect(w.as("fred").gate("thaw"), 0, "opened, default", "")
}

func requestRights(w *world) {
	w.Decided(w.Gate("production", frozen()))
	w.may("olaf", "gate-opener")
	for _, args := range [][]string{{"status", "production"}, {"list", "--timeline"}, {"preview", "production"}} {
		if got := w.as("olaf").gate(args...); got.code != 0 || strings.Contains(got.out+got.errOut, "gateexceptions") {
			w.Errorf("%v as a user who may only open: %+v", args, got)
		}
	}
	w.needs("open", func(who *world) output { return who.gate("open", "production", "--for=1h", "--reason=hotfix") })
	if by := w.ReadGate("production").LatestRequest(); by == nil || by.RequestedBy != "open" {
		w.Errorf("the API server has not stamped the user: %+v", by)
	}
	w.needs("close", func(who *world) output { return who.gate("close", "production", "--for=1h") })
	w.needs("thaw", func(who *world) output {
		w.expect(w.gate("close", "production"), 0, "closed, close request", "")
		return who.gate("reset", "production")
	})
}

func exceptRights(w *world) {
	w.Decided(w.Gate("production", frozen()))
	n := 0
	except := func(args ...string) func(*world) output {
		return func(who *world) output {
			n++ // one after the other, so that they do not overlap
			return who.gate(append([]string{"exception", "production", fmt.Sprintf("--from=%dh", 2*n), "--for=1h"}, args...)...)
		}
	}
	w.needs("exception", except())
	w.needs("exception --apply", except("--apply"))
	w.needs("exception --period", except("--period=08:00-09:00"))
	w.hasExactly("grace-but-gates", rule{"list,get,create", "gateexceptions.gating.toolkit.fluxcd.io"})
	w.expect(w.as("grace-but-gates").gate("exception", "production", "--for=1h", "--timezone=UTC", "--period=08:00-09:00"), 0, "timeZone: UTC", "warning: the exception is not checked against the gate: you may not get gates")
}
