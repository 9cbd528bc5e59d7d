package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	proceed     = v1alpha1.ProceedRequestedAtAnnotation
	requestedBy = v1alpha1.ProceedRequestedByAnnotation
	why         = v1alpha1.ProceedReasonAnnotation
)

var goings = []attack{
	kubectl("annotate", "annotate gate GATE "+proceed+"=NOW"),
	kubectl("annotate and overwrite", "annotate --overwrite gate GATE "+proceed+"=NOW "+why+"=flake"),
	kubectl("annotate all gates", "annotate gates --all "+proceed+"=NOW"),
	kubectl("annotate in the name of another", "annotate gate GATE "+proceed+"=NOW "+requestedBy+"=alice"),
	kubectl("a time to come", "annotate gate GATE "+proceed+"="+stamp(time.Now().Add(time.Hour))),
	kubectl("an empty value", "annotate gate GATE "+proceed+"="),
	kubectl("a reason for the next who does it", "annotate gate GATE "+why+"=approved"),
	kubectl("merge patch", `patch gate GATE --type=merge -p {"metadata":{"annotations":{"`+proceed+`":"NOW"}}}`),
	kubectl("JSON patch that copies", `patch gate GATE --type=json -p [{"op":"copy","from":"/metadata/creationTimestamp","path":"/metadata/annotations/proceed.gate.fluxcd.io~1requestedAt"}]`),
	apply("server-side apply", "apply --server-side", map[string]string{proceed: now()}),
	apply("server-side apply as the controller", "apply --server-side --force-conflicts --field-manager=gating-controller", map[string]string{proceed: now()}),
	apply("client-side apply", "apply", map[string]string{proceed: now()}),
	apply("replace", "replace", map[string]string{proceed: now()}),
}

// A person who has a release go on releases the targets that wait.
func TestNoPatchHasAReleaseGoOnWithoutTheVerbOpen(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	for _, p := range []*person{
		w.as("edith", editor, viewer), w.as("carol", w.role([]string{"get", "list", "patch", "update", "close"}, []string{"gates"})),
	} {
		for _, a := range goings {
			t.Run(a.name+" by "+p.Name, func(t *testing.T) {
				w := w.on(t)
				w.refused(p, g, a, fmt.Sprintf("user %s may not make the release of gate %s/production proceed: that needs the verb open", p.Name, w.Namespace))
			})
		}
	}
}

// Others have approved a release in waves. One person alone does not skip them.
func TestWhereOthersApproveOnePersonHasNoReleaseGoOn(t *testing.T) {
	w := newWorld(t)
	g := w.fourEyes(1)
	olga, alice, grace := w.as("olga", opener), w.as("alice", opener, approver), w.as("grace", emergencyOpener)
	w.refused(olga, g, kubectl("proceed", "annotate gate GATE "+proceed+"=NOW"), "user olga may not make the release of gate "+w.Namespace+"/production proceed: with spec.approvals.openRequests that needs the verb approve or emergency")
	w.Edit(g, func() {
		g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{}, Exceptions: &v1alpha1.ApprovalRule{Required: 2}}
	})
	w.allowed(olga, "annotate", "--overwrite", "gate", "production", proceed+"="+time.Now().UTC().Format(time.RFC3339Nano))
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}} })
	for _, p := range []*person{alice, grace} {
		w.allowed(p, "annotate", "--overwrite", "gate", "production", proceed+"="+time.Now().UTC().Format(time.RFC3339Nano))
		w.stamped(g, requestedBy, p.Name)
	}
}

func TestWhoHasAReleaseGoOnIsNamedByTheAPIServer(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob := w.as("alice", opener), w.as("bob", opener)
	w.allowed(alice, "annotate", "gate", "production", proceed+"="+now(), requestedBy+"=bob", why+"=flake")
	w.stamped(g, requestedBy, "alice")
	w.stamped(g, why, "flake")
	for _, forgery := range []string{requestedBy + "=bob", requestedBy + "-", requestedBy + "="} {
		w.allowed(alice, "annotate", "--overwrite", "gate", "production", forgery)
		w.stamped(g, requestedBy, "alice")
	}
	w.allowed(bob, "annotate", "--overwrite", "gate", "production", proceed+"="+time.Now().UTC().Format(time.RFC3339Nano))
	w.stamped(g, requestedBy, "bob")
	w.stamped(g, why, "") // he has not said that

	// A role with the verb patch alone takes nothing back, and leaves no name of its own.
	patrick := w.as("patrick", w.role([]string{"get", "patch"}, []string{"gates"}))
	w.refused(patrick, g, kubectl("remove", "annotate gate GATE "+proceed+"-"), "may not withdraw the request that the release of gate "+w.Namespace+"/production proceed")
	w.allowed(bob, "annotate", "gate", "production", proceed+"-")
	w.stamped(g, requestedBy, "")
	w.allowed(patrick, "annotate", "gate", "production", requestedBy+"=bob")
	w.stamped(g, requestedBy, "")
	out, err := alice.kubectl(w.Context(), w.Namespace, strings.Fields("annotate gate production proceed.gate.fluxcd.io/other=x")...)
	if err == nil || !strings.Contains(err.Error(), "may not change annotations other than those of requests") {
		t.Errorf("%s, %v", out, err)
	}
}
