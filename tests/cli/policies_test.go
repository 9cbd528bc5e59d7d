package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// guarded starts a control plane of its own with config/policies, which would change what other tests see.
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

// inForce waits until the policies judge what is written: the stamps, the verbs, and exceptions that overlap.
func (w *world) inForce() {
	w.Helper()
	at := func(name string) string {
		return `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"GateException","metadata":{"name":"` + name +
			`"},"spec":{"gateRef":{"name":"probe"},"type":"replace","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-02T00:00:00Z"}}`
	}
	says := func(want, command string) {
		w.Helper()
		w.Eventually(want, func() error {
			if got := w.shell(command); !strings.Contains(got.out+got.errOut, want) {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}
	says(v1alpha1.AuthorsAnnotation, "echo '"+at("probe")+"' | kubectl create -f - --dry-run=server -o yaml")
	says("created", "echo '"+at("probe")+"' | kubectl create -f -")
	says("gate-exception-overlap", "echo '"+at("other")+"' | kubectl create -f - --dry-run=server")
	says("gate-exception-verb", "kubectl annotate gtex probe approve.gate.fluxcd.io/requestedAt=x --dry-run=server")
	says("deleted", "kubectl delete gtex probe")
}

// may binds a ClusterRole to a person in the namespace.
func (w *world) may(who, role string) {
	w.Helper()
	_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "create", "rolebinding", who+"-"+role, "--clusterrole="+role, "--user="+who)
	w.Must(err)
}

// TestWithThePolicies has one control plane for all that needs them.
func TestWithThePolicies(t *testing.T) {
	t.Parallel()
	c := guarded(t)
	first := newWorldOn(t, c)
	first.inForce()
	for name, test := range map[string]func(*world){
		"an exception is approved by others, and each is told how many there are": approvals,
		"an exception opens a freeze, from the command alone":                     exceptions,
		"only who may approve does":                                               approvalRights,
		"only who may write exceptions does":                                      exceptRights,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, c)
			test(w)
		})
	}
}

func approvals(w *world) {
	spec := frozen()
	spec.Exceptions = &v1alpha1.ExceptionPolicy{Approvals: 2}
	w.Decided(w.Gate("production", spec))
	for _, who := range []string{"alice", "bob", "carol"} {
		w.may(who, "gate-viewer")
		w.may(who, "gate-exception-editor")
	}
	w.may("alice", "gate-exception-approver")
	w.may("bob", "gate-exception-approver")
	w.may("carol", "gate-exception-approver")
	alice, bob, carol := w.as("alice"), w.as("bob"), w.as("carol")
	w.expect(alice.shell(`kubectl gate except production --for 1h --name hotfix --reason "hotfix 1234" --apply`), 0, "", "waits for approval by others: kubectl gate approve -n "+w.Namespace+" hotfix")
	bob.shows("approve")
	w.expect(alice.gate("approve", "hotfix"), exitError, "", "error: you, alice, wrote it: somebody else has to approve it")
	w.expect(carol.gate("approve", "hotfix"), 0, "approved by carol, 2 of 2 approvals, ", "")
	w.expect(carol.gate("approve", "hotfix"), exitError, "", "error: you, carol, have approved generation 1 already")
	w.Opened("production", "True")
	_, err := w.Kubectl(w.Context(), "-n", w.Namespace, "patch", "gtex", "hotfix", "--type=merge", `-p={"spec":{"ttlAfterExpired":"1h"}}`)
	w.Must(err)
	w.expect(bob.gate("approve", "hotfix", "--generation=1"), exitError, "generation 2", "error: generation 1 is not the present one, which is 2")
	w.expect(bob.gate("approve", "hotfix"), 0, "approved by bob, 1 of 2 approvals, waits for 1 more", "")
}

func exceptions(w *world) {
	w.Decided(w.Gate("production", frozen()))
	w.may("alice", "gate-viewer")
	w.may("alice", "gate-exception-editor")
	alice := w.as("alice")
	alice.shows("except")
	w.Opened("production", "True")
	overlaps := alice.gate("except", "production", "--for=2h", "--name=second", "--apply")
	w.expect(overlaps, exitError, "", "warning: it overlaps with gateexception "+w.Namespace+"/hotfix-1234")
	w.expect(overlaps, exitError, "", "error: refused: gate exception "+w.Namespace+"/second overlaps with gate exception")
}

func approvalRights(w *world) {
	w.Decided(w.Gate("production", frozen()))
	w.may("alice", "gate-viewer")
	w.may("alice", "gate-exception-editor")
	w.expect(w.as("alice").gate("except", "production", "--for=1h", "--name=hotfix", "--apply"), 0, "", "is created")
	w.hasExactly("dora", rule{"get,patch,approve", "gateexceptions.gating.toolkit.fluxcd.io"})
	w.expect(w.as("dora").gate("approve", "hotfix"), 0, "approved by dora, ", "")
	w.hasExactly("erin", rule{"get,patch", "gateexceptions.gating.toolkit.fluxcd.io"})
	w.refused(w.as("erin").gate("approve", "hotfix"), `error: you may not approve gateexceptions in namespace "`+w.Namespace+`": that needs the verb "approve", which the ClusterRole gate-exception-approver has`)
	w.hasExactly("frank", rule{"get", "gateexceptions.gating.toolkit.fluxcd.io"})
	w.refused(w.as("frank").gate("approve", "hotfix"), `error: you may not patch gateexceptions in namespace "`+w.Namespace+`": that needs the verb "patch", which the ClusterRole gate-exception-approver has`)
	w.refused(w.as("grace").gate("approve", "hotfix"), `error: you may not get gateexceptions in namespace "`+w.Namespace+`": that needs the verb "get", which the ClusterRole gate-viewer has`)
}

func exceptRights(w *world) {
	w.Decided(w.Gate("production", frozen()))
	gates, theirs := "gates.gating.toolkit.fluxcd.io", "gateexceptions.gating.toolkit.fluxcd.io"
	w.hasExactly("dora", rule{"get", gates}, rule{"get,list,create", theirs})
	got := w.as("dora").gate("except", "production", "--for=1h", "--name=hotfix", "--apply")
	if w.expect(got, 0, "", "is created, in force until"); strings.Contains(got.errOut, "warning") {
		w.Errorf("%+v", got)
	}
	w.hasExactly("erin", rule{"get", gates}, rule{"get,list", theirs})
	w.refused(w.as("erin").gate("except", "production", "--from=2h", "--for=1h", "--name=other", "--apply"),
		`error: you may not create gateexceptions in namespace "`+w.Namespace+`": that needs the verb "create", which the ClusterRole gate-exception-editor has`)
	w.expect(w.as("erin").gate("except", "production", "--from=2h", "--for=1h"), 0, "kind: GateException", "")
	w.refused(w.as("grace").gate("except", "production", "--for=1h"), `error: you may not get gates in namespace "`+w.Namespace+
		`": that needs the verb "get", which the ClusterRole gate-viewer has; only with --type an exception is written without reading its gate`)
	w.expect(w.as("grace").gate("except", "production", "--for=1h", "--type=extend"), 0, "type: extend", "warning: written without a look at the gate: you may not get gates")
}
