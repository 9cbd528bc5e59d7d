package policies

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestNobodyApprovesAnExceptionWithoutTheVerb(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "hotfix", "", nil)
	manifest := func(annotations map[string]string) string { return w.except("hotfix", "", annotations) }
	at := map[string]string{approveAt: w.approvalOf("hotfix")}
	for _, p := range []*person{
		w.as("edith", editor, exceptionEditor, viewer),
		w.as("patrick", w.role([]string{"get", "list", "patch", "update"}, []string{"gateexceptions"})),
		w.as("alice", opener, exceptionEditor, viewer), // opens Gates, and may do all but approve
	} {
		cause := "user " + p.Name + " may not approve gate exception " + w.Namespace + "/hotfix: it needs the verb approve on gateexceptions.gating.toolkit.fluxcd.io"
		for _, args := range [][]string{
			w.approval(), w.approval(approveBy + "=" + w.lines("1 bob")), w.approval("--dry-run=server"),
			{"annotate", "gtex", "hotfix", approveAt + "="},
			{"annotate", "gtex", "--all", approveAt + "=" + at[approveAt]},
			{"patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"` + approveAt + `":"` + at[approveAt] + `"}}}`},
			{"patch", "gtex", "hotfix", "--type=json", "-p", `[{"op":"add","path":"/metadata/annotations","value":{"` + approveAt + `":"` + at[approveAt] + `"}}]`},
			{"patch", "gtex", "hotfix", "--type=json", "-p", `[{"op":"copy","from":"/metadata/creationTimestamp","path":"/metadata/annotations/approve.gate.fluxcd.io~1requestedAt"}]`},
			{"apply", "--server-side", "--force-conflicts", "-f", manifest(at)},
			{"apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "-f", manifest(at)},
			{"apply", "-f", manifest(at)}, {"replace", "-f", manifest(at)},
		} {
			w.refusedException(p, "hotfix", cause, args...)
		}
	}
	account := w.as("system:serviceaccount:gating-system:gating-controller", w.role([]string{"get", "patch"}, []string{"gateexceptions"}))
	w.refusedException(account, "hotfix", "user "+account.Name+" may not approve", w.approval()...)
}

func TestNobodyApprovesWhatTheyWrote(t *testing.T) {
	w := newWorld(t)
	beth, carl := w.as("beth", exceptionEditor, exceptionApprover), w.as("carl", exceptionEditor, exceptionApprover)
	clara := w.clusterAdmin()
	w.born(beth, "hotfix", "", nil)
	wrote := func(p *person) string {
		return "user " + p.Name + " wrote gate exception " + w.Namespace + "/hotfix: somebody else has to approve it"
	}
	w.refusedException(beth, "hotfix", wrote(beth), w.approval()...)
	w.refusedException(beth, "hotfix", wrote(beth), w.approval(authors+"=carl")...)
	w.refusedException(beth, "hotfix", wrote(beth), w.approval(authors+"-")...)
	w.allowed(carl, w.approval()...)
	w.stampedException("hotfix", "beth", "1 carl")

	// Whoever edits it is an author from then on, and was not before.
	w.allowed(carl, ttl("1h")...)
	w.refusedException(carl, "hotfix", wrote(carl), w.approval()...)
	w.allowed(carl, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":null}}`)
	w.refusedException(carl, "hotfix", wrote(carl), w.approval()...)
	w.refusedException(beth, "hotfix", wrote(beth), w.approval()...)

	// In one go: what is approved is the spec as it is.
	edit := `{"metadata":{"annotations":{"` + approveAt + `":"` + w.approvalOf("hotfix") + `"}},"spec":{"ttlAfterExpired":"2h"}}`
	for _, p := range []*person{beth, clara} {
		w.refusedException(p, "hotfix", wrote(p), "patch", "gtex", "hotfix", "--type=merge", "-p", edit)
	}
	w.allowed(clara, w.approval()...)
	w.stampedException("hotfix", "beth\ncarl", "3 clara")

	// Nor by deleting and creating it again.
	w.allowed(beth, "replace", "--force", "-f", w.except("hotfix", "", map[string]string{authors: "carl", approveBy: w.lines("1 clara\n1 carl")}))
	w.stampedException("hotfix", "beth", "")
	w.refusedException(beth, "hotfix", wrote(beth), w.approval()...)
}

func TestNoExceptionIsBornApproved(t *testing.T) {
	w := newWorld(t)
	for _, p := range []*person{w.as("ona", exceptionEditor, viewer), w.as("beth", exceptionEditor, exceptionApprover), w.clusterAdmin()} {
		for _, command := range []string{"create", "apply", "apply --server-side"} {
			for _, name := range []string{"hotfix", "generateName: hotfix-"} {
				if strings.HasPrefix(name, "generate") && command != "create" {
					continue
				}
				out, err := p.kubectl(w.Context(), w.Namespace, append(strings.Fields(command), "-f", w.except(name, "", map[string]string{approveAt: now(), approveBy: "1 bob"}))...)
				if err == nil || !strings.Contains(out, "user "+p.Name+" may not approve gate exception "+w.Namespace+"/hotfix") ||
					!strings.Contains(out, " while creating it: create it without approve.gate.fluxcd.io/requestedAt, somebody else has to approve it") {
					t.Errorf("%s by %s: %s, %v", command, p.Name, out, err)
				}
			}
		}
	}
}

func TestTheVerbApproveIsThatOfOneException(t *testing.T) {
	home, away := newWorld(t), newWorld(t)
	ona := home.as("ona", exceptionEditor, viewer)
	away.as("ona", exceptionEditor, viewer)
	later := `{"validFrom":"2099-02-01T00:00:00Z","validUntil":"2099-02-02T00:00:00Z"}`
	home.born(ona, "hotfix", "", nil)
	home.born(ona, "other", later, nil)
	away.born(ona, "hotfix", "", nil)
	nora := home.as("nora", home.role([]string{"get", "patch"}, []string{"gateexceptions"}), home.role([]string{"approve"}, []string{"gateexceptions"}, "hotfix", "production"))
	away.as("nora", away.role([]string{"get", "patch"}, []string{"gateexceptions"}))
	home.refusedException(nora, "other", "user nora may not approve gate exception "+home.Namespace+"/other", "annotate", "gtex", "other", approveAt+"="+home.approvalOf("other"))
	away.refusedException(nora, "hotfix", "user nora may not approve gate exception "+away.Namespace+"/hotfix", away.approval()...)
	home.allowed(nora, home.approval()...)
	home.stampedException("hotfix", "ona", "1 nora")
}

// Flux takes requestedAt away, maybe before the controller has looked.
func TestNobodyTakesBackAnApproval(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	patty := w.as("patty", w.role([]string{"get", "patch"}, []string{"gateexceptions"}))
	w.born(ona, "hotfix", "", nil)
	for _, p := range []*person{ona, alice, patty, w.clusterAdmin()} {
		for _, more := range [][]string{nil, {approveBy + "-"}, {approveBy + "-", authors + "-"}} {
			w.allowed(alice, w.approval()...)
			w.allowed(p, append([]string{"annotate", "gtex", "hotfix", approveAt + "-"}, more...)...)
			w.stampedException("hotfix", "ona", "1 alice")
			w.allowed(p, "annotate", "--overwrite", "gtex", "hotfix", approveBy+"=")
			w.stampedException("hotfix", "ona", "1 alice")
		}
	}
}

// A manifest in Git has been written by somebody else than Flux, maybe, and is not
// approved by Flux for that.
func TestNobodyApprovesByAManifest(t *testing.T) {
	w := newWorld(t)
	ona, alice, bob := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover), w.as("bob", exceptionEditor, exceptionApprover)
	flux := w.clusterAdmin()
	w.born(ona, "hotfix", "", nil)
	at := map[string]string{approveAt: w.approvalOf("hotfix")}
	part, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GateExceptionKind,
		"metadata": map[string]any{"name": "hotfix", "namespace": w.Namespace, "annotations": at},
	})
	w.Must(err)
	for _, p := range []*person{flux, bob} {
		cause := "user " + p.Name + " may not approve gate exception " + w.Namespace + "/hotfix by a manifest, together with its spec: use kubectl annotate"
		for _, args := range [][]string{
			{"apply", "--server-side", "--field-manager=kustomize-controller", "-f", w.except("hotfix", "", at)},
			{"apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", w.except("hotfix", "", at)},
			{"apply", "--server-side", "--validate=false", "--field-manager=kustomize-controller", "-f", w.file(string(part))},
			{"apply", "-f", w.except("hotfix", "", at)},
		} {
			w.refusedException(p, "hotfix", cause, args...)
		}
	}
	w.allowed(flux, "apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", w.except("hotfix", "", nil))
	w.refusedException(bob, "hotfix", "by a manifest, together with its spec", "apply", "--server-side", "--force-conflicts",
		"--field-manager=kustomize-controller", "-f", w.except("hotfix", "", at))
	w.stampedException("hotfix", "ona", "")
	w.allowed(alice, w.approval()...)
	w.allowed(bob, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"`+approveAt+`":"`+w.approvalOf("hotfix")+`"}}}`)
	w.stampedException("hotfix", "ona", "1 alice\n1 bob")
}

func TestAnApproverChangesNothingElse(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", "", map[string]string{"owner": "team-a"})
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/stay"],"labels":{"gating.toolkit.fluxcd.io/gate":"production"}}}`)
	may := func(what string) string {
		return "user alice may not change " + what + " of gate exception " + w.Namespace + "/hotfix: it needs the verb update on gateexceptions.gating.toolkit.fluxcd.io"
	}
	merge := "patch gtex hotfix --type=merge -p "
	for _, tc := range []struct{ cause, command string }{
		{may("spec"), merge + `{"spec":{"validUntil":"2099-01-09T00:00:00Z"}}`},
		{may("spec"), merge + `{"spec":{"timeZone":"UTC","closePeriods":[{"name":"now","start":"00:00","end":"24:00"}]}}`},
		{may("spec"), `patch gtex hotfix --type=json -p [{"op":"replace","path":"/spec/default","value":"opened"},{"op":"add","path":"/spec/ttlAfterExpired","value":"1h"}]`},
		{may("labels"), "label gtex hotfix a=b"},
		{may("labels"), "label gtex hotfix gating.toolkit.fluxcd.io/gate-"},
		{may("finalizers"), merge + `{"metadata":{"finalizers":null}}`},
		{may("ownerReferences"), merge + `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`},
		{may("annotations other than those of approvals"), "annotate gtex hotfix kustomize.toolkit.fluxcd.io/reconcile=disabled"},
		{may("annotations other than those of approvals"), "annotate gtex hotfix owner-"},
		{may("spec, labels"), merge + `{"metadata":{"labels":{"a":"b"}},"spec":{"ttlAfterExpired":"1h"}}`},
		{may("annotations other than those of approvals"), "apply --server-side --force-conflicts -f " + w.except("hotfix", "", map[string]string{"a": "b"})},
		{`cannot delete resource "gateexceptions"`, "delete gtex hotfix"},
		{`cannot deletecollection resource "gateexceptions"`, "delete --raw /apis/gating.toolkit.fluxcd.io/v1alpha1/namespaces/" + w.Namespace + "/gateexceptions"},
		{`cannot update resource "gateexceptions"`, "replace -f " + w.except("hotfix", "", nil)},
		{`cannot create resource "gateexceptions"`, "create -f " + w.except("another", "", nil)},
		{`cannot create resource "gateexceptions"`, "apply --server-side -f " + w.except("another", "", nil)},
		{`User "alice" cannot`, `patch gtex hotfix --subresource=status --type=merge -p {"status":{"observedGeneration":9}}`},
	} {
		w.refusedException(alice, "hotfix", tc.cause, strings.Fields(tc.command)...)
	}
	// The spec along with an approval, by one who may only approve.
	edit := `{"metadata":{"annotations":{"` + approveAt + `":"` + w.approvalOf("hotfix") + `"}},"spec":{"ttlAfterExpired":"2h"}}`
	w.refusedException(alice, "hotfix", "user alice ", "patch", "gtex", "hotfix", "--type=merge", "-p", edit)
	w.allowed(alice, "annotate", "gtex", "hotfix", "reconcile.fluxcd.io/requestedAt=1")
	w.allowed(alice, w.approval()...)
	w.allowed(alice, "get", "gtex")
	w.allowed(ona, append(strings.Fields(merge), `{"metadata":{"finalizers":null}}`)...)
}

// People on call make exceptions, and touch no Gate.
func TestWhoMakesExceptionsEditsNoGate(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	ona := w.as("ona", exceptionEditor, viewer)
	w.born(ona, "hotfix", "", nil)
	w.allowed(ona, ttl("1h")...)
	w.allowed(ona, "label", "gtex", "hotfix", "a=b")
	w.allowed(ona, "replace", "-f", w.except("hotfix", "", nil))
	w.allowed(ona, "apply", "--server-side", "--force-conflicts", "-f", w.except("hotfix", "", map[string]string{"c": "d"}))
	w.allowed(ona, "get", "gates,gtex")
	for _, a := range []attack{
		openings[0], kubectl("close", "annotate gate GATE "+closeAt+"=NOW"), kubectl("label", "label gate GATE a=b"),
		kubectl("spec", `patch gate GATE --type=merge -p {"spec":{"default":"opened"}}`), kubectl("delete", "delete gate GATE"),
		kubectl("no approvals", `patch gate GATE --type=merge -p {"spec":{"approvals":{"exceptions":{"required":0}}}}`),
		apply("replace", "replace", nil), apply("apply", "apply --server-side", nil),
	} {
		w.refused(ona, g, a, `User "ona" cannot`)
	}
	w.allowed(ona, "delete", "gtex", "hotfix")
	w.allowed(ona, "delete", "gtex", "--all")
}

func TestWhoHasNoRoleForItMakesNoException(t *testing.T) {
	w := newWorld(t)
	w.born(w.as("ona", exceptionEditor, viewer), "hotfix", "", nil)
	for _, p := range []*person{
		w.as("victor", viewer), w.as("olaf", opener), w.as("edgar", editor), w.as("alice", exceptionApprover), w.as("mallory"),
	} {
		cannot := func(verb string) string { return `User "` + p.Name + `" cannot ` + verb + ` resource "gateexceptions"` }
		for _, command := range []string{"create", "apply --server-side"} {
			out, err := p.kubectl(w.Context(), w.Namespace, append(strings.Fields(command), "--validate=false", "-f", w.except("another", `{"gateRef":{"name":"staging"}}`, nil))...)
			if err == nil || !strings.Contains(out, cannot("create")) && !strings.Contains(out, cannot("patch")) {
				t.Errorf("%s by %s: %s, %v", command, p.Name, out, err)
			}
		}
		if p.Name != "alice" {
			w.refusedException(p, "hotfix", cannot("patch"), "apply", "--server-side", "--force-conflicts", "--validate=false",
				"-f", w.except("hotfix", `{"ttlAfterExpired":"1h"}`, nil))
		}
		w.refusedException(p, "hotfix", cannot("delete"), "delete", "gtex", "hotfix")
		w.refusedException(p, "hotfix", cannot("update"), "replace", "--raw",
			"/apis/gating.toolkit.fluxcd.io/v1alpha1/namespaces/"+w.Namespace+"/gateexceptions/hotfix", "-f", w.except("hotfix", "", nil))
	}
	w.allowed(w.as("victor"), "get", "gtex", "hotfix")
	w.refusedException(w.as("mallory"), "hotfix", "cannot get", "get", "gtex", "hotfix")
}

// RBAC lets nobody hand out what they do not have.
func TestWhoAdministersANamespaceDoesNotMakeThemselvesAnApprover(t *testing.T) {
	w := newWorld(t)
	admin := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"gateexceptions"}, Verbs: []string{"get", "list", "watch", "create", "delete", "deletecollection", "patch", "update"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"get", "list", "create", "update", "patch", "delete"}},
	}}
	w.Create(admin)
	t.Cleanup(func() { _ = cluster.Client.Delete(context.Background(), admin) })
	ada := w.as("ada", admin.Name)
	for _, args := range [][]string{
		{"create", "rolebinding", "mine", "--clusterrole=" + exceptionApprover, "--user=ada"},
		{"create", "role", "mine", "--verb=approve", "--resource=gateexceptions.gating.toolkit.fluxcd.io"},
	} {
		if out, err := ada.kubectl(w.Context(), w.Namespace, args...); err == nil || !strings.Contains(out, "is attempting to grant RBAC permissions not currently held") {
			t.Errorf("%q: %s, %v", args, out, err)
		}
	}
	w.born(ada, "hotfix", "", nil)
	w.allowed(ada, "create", "rolebinding", "colleague", "--clusterrole="+exceptionEditor, "--user=ida") // what they have, they can
}

func TestTheControllerEditsFinalizersAndTheLabelOfExceptionsOnly(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	account := w.as("system:serviceaccount:gating-system:gating-controller", w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	w.born(ona, "hotfix", "", nil)
	may := func(what string) string {
		return "user " + account.Name + " may not change " + what + " of gate exception " + w.Namespace + "/hotfix: it needs the verb update"
	}
	merge := "patch gtex hotfix --type=merge -p "
	for _, tc := range []struct{ cause, command string }{
		{may("spec"), merge + `{"spec":{"validUntil":"2099-01-09T00:00:00Z"}}`},
		{may("labels"), "label gtex hotfix a=b"},
		{may("labels"), "label gtex hotfix gating.toolkit.fluxcd.io/gate=production a=b"},
		{may("annotations other than those of approvals"), "annotate gtex hotfix a=b"},
		{may("ownerReferences"), merge + `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`},
	} {
		w.refusedException(account, "hotfix", tc.cause, strings.Fields(tc.command)...)
	}
	w.allowed(account, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"finalizers":["`+v1alpha1.GateFinalizer+`"],"labels":{"`+v1alpha1.GateLabel+`":"production"}}}`)
	w.allowed(ona, "label", "gtex", "hotfix", "a=b")
	w.allowed(account, "label", "--overwrite", "gtex", "hotfix", v1alpha1.GateLabel+"=staging")
	w.allowed(account, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"finalizers":null,"labels":{"`+v1alpha1.GateLabel+`":null}}}`)
	w.stampedException("hotfix", "ona", "")
}

func TestNobodyButTheControllerWritesTheStatusOfAnException(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", "", nil)
	stan := w.as("stan", w.role([]string{"get", "patch", "update"}, []string{"gateexceptions", "gateexceptions/status"}))
	write := func(approvals string) []string {
		return []string{"patch", "gtex", "hotfix", "--subresource=status", "--type=merge", "-p", `{"status":{` + activeCondition("InForce") + `,"approvals":[` + approvals + `]}}`}
	}
	const by = `{"approvedBy":"alice","recordedAt":"2026-11-21T16:41:57Z","generation":1}`
	for _, p := range []*person{stan, w.clusterAdmin()} {
		w.refusedException(p, "hotfix", "user "+p.Name+" may not write the status of gate exception "+w.Namespace+
			"/hotfix: it remembers approvals, so that only the gating-controller writes it", write(by)...)
	}
	for _, p := range []*person{ona, alice, w.as("otto", viewer, editor, opener, exceptionEditor, exceptionApprover)} {
		w.refusedException(p, "hotfix", `User "`+p.Name+`" cannot`, write(by)...)
	}
	// Along with a spec it is dropped.
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":"1h"},"status":{`+activeCondition("InForce")+`,"approvals":[`+by+`]}}`)
	if s := w.exception("hotfix").Status; meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ActiveCondition) || len(s.Approvals) > 0 {
		t.Errorf("status %+v", s)
	}
}

// Between the reading and the writing of the controller, the author could put
// another exception in the place of the one that was approved.
func TestTheStatusRemembersOnlyWhatIsStamped(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	account := w.as("system:serviceaccount:gating-system:gating-controller", w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	w.born(ona, "hotfix", "", nil)
	write := func(approvals string) []string {
		return []string{"patch", "gtex", "hotfix", "--subresource=status", "--type=merge", "-p", `{"status":{"approvals":[` + approvals + `]}}`}
	}
	const by = `{"approvedBy":"alice","recordedAt":"2026-11-21T16:41:57Z","generation":1}`
	cause := "the status of gate exception " + w.Namespace + "/hotfix has an approval that is not in approve.gate.fluxcd.io/requestedBy"
	w.refusedException(account, "hotfix", cause, write(by)...)
	w.allowed(alice, w.approval()...)
	w.refusedException(account, "hotfix", cause, write(strings.Replace(by, `alice`, `bob`, 1))...)
	w.refusedException(account, "hotfix", cause, write(strings.Replace(by, `:1`, `:2`, 1))...)
	w.allowed(account, write(by)...)
	w.allowed(alice, "annotate", "gtex", "hotfix", approveAt+"-")
	w.allowed(account, "patch", "gtex", "hotfix", "--subresource=status", "--type=merge", "-p", `{"status":{`+activeCondition("Pending")+`}}`) // remembers
	if got := w.exception("hotfix").Status.Approvals; len(got) != 1 || got[0].ApprovedBy != "alice" {
		t.Errorf("approvals %+v", got)
	}
	w.allowed(ona, "replace", "--force", "-f", w.except("hotfix", `{"timeZone":"UTC","closePeriods":[{"name":"x","start":"00:00","end":"24:00"}]}`, nil))
	w.refusedException(account, "hotfix", cause, write(by)...)
	w.allowed(account, write("")...)
}
