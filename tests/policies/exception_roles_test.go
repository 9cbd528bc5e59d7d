package policies

import (
	"context"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestExceptionApprovalNeedsVerb(t *testing.T) {
	w := newWorld(t)
	w.createException(w.as("ona", exceptionEditor, viewer), "hotfix", "", nil)
	value := w.approvalOf("hotfix")
	file := exceptionFile("hotfix", "", map[string]string{approveAt: value})
	for _, p := range []*person{
		w.as("edith", editor, opener, exceptionEditor, viewer),
		w.as("patrick", w.role([]string{"get", "list", "patch", "update"}, []string{"gateexceptions"})),
	} {
		cause := "user " + p.Name + " may not approve gate exception " + w.Namespace + "/hotfix: it needs the verb approve on gateexceptions.gating.toolkit.fluxcd.io"
		for _, args := range [][]string{
			w.approval(), w.approval(approveBy + "=" + w.lines("1 bob")), w.approval("--dry-run=server"),
			{"annotate gtex hotfix " + approveAt + "="},
			{"annotate gtex --all " + approveAt + "=" + value},
			{`patch gtex hotfix --type=merge -p {"metadata":{"annotations":{"` + approveAt + `":"` + value + `"}}}`},
			{`patch gtex hotfix --type=json -p [{"op":"add","path":"/metadata/annotations","value":{"` + approveAt + `":"` + value + `"}}]`},
			{`patch gtex hotfix --type=json -p [{"op":"copy","from":"/metadata/creationTimestamp","path":"/metadata/annotations/approve.gate.fluxcd.io~1requestedAt"}]`},
			{"apply --server-side --force-conflicts -f " + file},
			{"apply --server-side --force-conflicts --field-manager=gating-controller -f " + file},
			{"apply -f " + file}, {"replace -f " + file},
		} {
			w.refused(p, cause, args...)
		}
	}
	account := w.as(controllerName, w.role([]string{"get", "patch"}, []string{"gateexceptions"}))
	w.refused(account, "user "+account.Name+" may not approve", w.approval()...)
}

func TestAuthorsCannotApprove(t *testing.T) {
	w := newWorld(t)
	beth, carl := w.as("beth", exceptionEditor, exceptionApprover), w.as("carl", exceptionEditor, exceptionApprover)
	clara := w.clusterAdmin()
	w.createException(beth, "hotfix", "", nil)
	wrote := func(p *person) string {
		return "user " + p.Name + " wrote gate exception " + w.Namespace + "/hotfix: another user must approve it"
	}
	for _, forged := range [][]string{nil, {authors + "=carl"}, {authors + "-"}} {
		w.refused(beth, wrote(beth), w.approval(forged...)...)
	}
	w.allowed(carl, w.approval()...)
	w.stampedException("hotfix", "beth", "1 carl")

	// A user who edits the exception is an author from then on, but was not before.
	w.allowed(carl, ttl("1h")...)
	w.refused(carl, wrote(carl), w.approval()...)
	w.allowed(carl, `patch gtex hotfix --type=merge -p {"spec":{"ttlAfterExpired":null}}`)
	w.refused(carl, wrote(carl), w.approval()...)
	w.refused(beth, wrote(beth), w.approval()...)

	// With one patch, the user would approve the resulting spec.
	edit := `{"metadata":{"annotations":{"` + approveAt + `":"` + w.approvalOf("hotfix") + `"}},"spec":{"ttlAfterExpired":"2h"}}`
	for _, p := range []*person{beth, clara} {
		w.refused(p, wrote(p), "patch gtex hotfix --type=merge -p "+edit)
	}
	w.allowed(clara, w.approval()...)
	w.stampedException("hotfix", "beth\ncarl", "3 clara")

	// The user cannot approve it after deleting and creating it again, either.
	w.allowed(beth, "replace", "--force", "-f", exceptionFile("hotfix", "", map[string]string{authors: "carl", approveBy: w.lines("1 clara\n1 carl")}))
	w.stampedException("hotfix", "beth", "")
	w.refused(beth, wrote(beth), w.approval()...)
}

func TestNoExceptionIsCreatedApproved(t *testing.T) {
	w := newWorld(t)
	for _, p := range []*person{w.as("ona", exceptionEditor, viewer), w.as("beth", exceptionEditor, exceptionApprover), w.clusterAdmin()} {
		for command, name := range map[string]string{"create": "hotfix", "apply": "hotfix", "apply --server-side": "hotfix", "create --validate=false": "generateName: hotfix-"} {
			args := append(strings.Fields(command), "-f", exceptionFile(name, "", map[string]string{approveAt: now(), approveBy: "1 bob"}))
			w.refused(p, "user "+p.Name+" may not approve gate exception "+w.Namespace+"/"+strings.TrimPrefix(name, "generateName: "), args...)
			w.refused(p, " while creating it: create it without approve.gate.fluxcd.io/requestedAt, then another user must approve it", args...)
		}
	}
}

func TestVerbApproveIsPerException(t *testing.T) {
	home, away := newWorld(t), newWorld(t)
	ona := home.as("ona", exceptionEditor, viewer)
	away.as("ona", exceptionEditor, viewer)
	home.createException(ona, "hotfix", "", nil)
	home.createException(ona, "other", `{"validFrom":"2099-02-01T00:00:00Z","validUntil":"2099-02-02T00:00:00Z"}`, nil)
	away.createException(ona, "hotfix", "", nil)
	nora := home.as("nora", home.role([]string{"get", "patch"}, []string{"gateexceptions"}), home.role([]string{"approve"}, []string{"gateexceptions"}, "hotfix", "production"))
	away.as("nora", away.role([]string{"get", "patch"}, []string{"gateexceptions"}))
	home.refused(nora, "user nora may not approve gate exception "+home.Namespace+"/other", "annotate gtex other "+approveAt+"="+home.approvalOf("other"))
	away.refused(nora, "user nora may not approve gate exception "+away.Namespace+"/hotfix", away.approval()...)
	home.allowed(nora, home.approval()...)
	home.stampedException("hotfix", "ona", "1 nora")
}

// Flux removes requestedAt, possibly while the controller is down.
func TestApprovalCannotBeWithdrawn(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.createException(ona, "hotfix", opens(1), nil)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	start := w.stopController()
	for _, p := range []*person{ona, alice, w.as("patty", w.role([]string{"get", "patch"}, []string{"gateexceptions"})), w.clusterAdmin()} {
		for _, more := range [][]string{nil, {approveBy + "-"}, {approveBy + "-", authors + "-"}} {
			w.allowed(alice, w.approval()...)
			w.allowed(p, append([]string{"annotate", "gtex", "hotfix", approveAt + "-"}, more...)...)
			w.stampedException("hotfix", "ona", "1 alice")
			w.allowed(p, "annotate --overwrite gtex hotfix "+approveBy+"=")
			w.stampedException("hotfix", "ona", "1 alice")
		}
	}
	start()
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

// Flux applies manifests that users have written. That must not approve them.
func TestManifestDoesNotApprove(t *testing.T) {
	w := newWorld(t)
	ona, alice, bob := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover), w.as("bob", exceptionEditor, exceptionApprover)
	flux := w.clusterAdmin()
	w.createException(ona, "hotfix", "", nil)
	at := map[string]string{approveAt: w.approvalOf("hotfix")}
	for _, p := range []*person{flux, bob} {
		cause := "user " + p.Name + " may not approve gate exception " + w.Namespace + "/hotfix by a manifest, together with its spec: use kubectl annotate"
		for _, command := range []string{
			"apply --server-side", "apply --server-side --force-conflicts", "apply",
			"apply --server-side --validate=false", // only the annotation
		} {
			file := exceptionFile("hotfix", "", at)
			if strings.HasSuffix(command, "false") {
				file, _, _ = strings.Cut(file, `,"spec"`)
				file += "}"
			}
			if command != "apply" {
				command += " --field-manager=kustomize-controller"
			}
			w.refused(p, cause, command+" -f "+file)
		}
	}
	w.allowed(flux, "apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", exceptionFile("hotfix", "", nil))
	w.refused(bob, "by a manifest, together with its spec", "apply", "--server-side", "--force-conflicts", "--field-manager=kustomize-controller", "-f", exceptionFile("hotfix", "", at))
	w.stampedException("hotfix", "ona", "")
	w.allowed(alice, w.approval()...)
	w.allowed(bob, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"`+approveAt+`":"`+w.approvalOf("hotfix")+`"}}}`)
	w.stampedException("hotfix", "ona", "1 alice\n1 bob")
}

func TestApproverChangesNothingElse(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.createException(ona, "hotfix", "", map[string]string{"owner": "team-a"})
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/stay"],"labels":{"gating.toolkit.fluxcd.io/gate":"production"}}}`)
	w.mayNotEdit(alice, "gate exception", "gtex hotfix", `{"validUntil":"2099-01-09T00:00:00Z"}`)
	w.mayNotEdit(alice, "gate exception", "gtex hotfix", `{"timeZone":"UTC","closePeriods":[{"name":"now","start":"00:00","end":"24:00"}]}`)
	for _, tc := range []struct{ cause, command string }{
		{"user alice may not change spec of", `patch gtex hotfix --type=json -p [{"op":"add","path":"/spec/ttlAfterExpired","value":"1h"}]`},
		{"user alice may not change labels of", "label gtex hotfix gating.toolkit.fluxcd.io/gate-"},
		{"may not change annotations other than", "apply --server-side --force-conflicts -f " + exceptionFile("hotfix", "", map[string]string{"a": "b"})},
		{`cannot delete resource "gateexceptions"`, "delete gtex hotfix"},
		{`cannot update resource "gateexceptions"`, "replace -f " + exceptionFile("hotfix", "", nil)},
		{`cannot create resource "gateexceptions"`, "create -f " + exceptionFile("another", "", nil)},
		{`cannot create resource "gateexceptions"`, "apply --server-side -f " + exceptionFile("another", "", nil)},
		{`User "alice" cannot`, `patch gtex hotfix --subresource=status --type=merge -p {"status":{"observedGeneration":9}}`},
	} {
		w.refused(alice, tc.cause, tc.command)
	}
	// The spec and an approval in one patch, by a user who may only approve.
	edit := `{"metadata":{"annotations":{"` + approveAt + `":"` + w.approvalOf("hotfix") + `"}},"spec":{"ttlAfterExpired":"2h"}}`
	w.refused(alice, "user alice ", "patch", "gtex", "hotfix", "--type=merge", "-p", edit)
	w.allowed(alice, "annotate", "gtex", "hotfix", "reconcile.fluxcd.io/requestedAt=1")
	w.allowed(alice, w.approval()...)
	w.allowed(alice, "get", "gtex")
	w.allowed(ona, `patch gtex hotfix --type=merge -p {"metadata":{"finalizers":null}}`)
}

// RBAC refuses to grant permissions that the user lacks.
func TestNamespaceAdminCannotGrantVerbApprove(t *testing.T) {
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
		w.refused(ada, "is attempting to grant RBAC permissions not currently held", args...)
	}
	w.createException(ada, "hotfix", "", nil)
	w.allowed(ada, "create", "rolebinding", "colleague", "--clusterrole="+exceptionEditor, "--user=ida") // users can grant their own permissions
}

func TestControllerEditsOnlyFinalizersAndLabelOfExceptions(t *testing.T) {
	w := newWorld(t)
	ona := w.as("ona", exceptionEditor, viewer)
	account := w.as(controllerName, w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"}))
	w.createException(ona, "hotfix", "", map[string]string{"owner": "team-a"})
	w.mayNotEdit(account, "gate exception", "gtex hotfix", `{"validUntil":"2099-01-09T00:00:00Z"}`)
	w.allowed(account, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"finalizers":["`+v1alpha1.GateFinalizer+`"],"labels":{"`+v1alpha1.GateLabel+`":"production"}}}`)
	w.allowed(ona, "label", "gtex", "hotfix", "a=b")
	w.allowed(account, "label", "--overwrite", "gtex", "hotfix", v1alpha1.GateLabel+"=staging")
	w.allowed(account, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"finalizers":null,"labels":{"`+v1alpha1.GateLabel+`":null}}}`)
	w.stampedException("hotfix", "ona", "")
}

func TestOnlyControllerWritesExceptionStatus(t *testing.T) {
	w := newWorld(t)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.createException(ona, "hotfix", "", nil)
	access := w.role([]string{"get", "patch"}, []string{"gateexceptions", "gateexceptions/status"})
	stan, account := w.as("stan", access), w.as(controllerName, access)
	status := func(content string) string {
		return `patch gtex hotfix --subresource=status --type=merge -p {"status":{` + content + `}}`
	}
	const by = `"approvals":[{"approvedBy":"alice","recordedAt":"2026-11-21T16:41:57Z","generation":1}]`
	for _, p := range []*person{stan, w.clusterAdmin()} {
		w.refused(p, "user "+p.Name+" may not write the status of gate exception "+w.Namespace+
			"/hotfix: it records approvals, so only the gating-controller may write it", status(by))
	}
	otto := w.as("otto", viewer, editor, opener, exceptionEditor, exceptionApprover)
	w.refused(otto, `User "otto" cannot`, status(by))
	// In a write of the spec, the status is ignored.
	w.allowed(ona, `patch gtex hotfix --type=merge -p {"spec":{"ttlAfterExpired":"1h"},"status":{`+activeCondition("InForce")+","+by+`}}`)
	if s := w.exception("hotfix").Status; meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ActiveCondition) || len(s.Approvals) > 0 {
		t.Errorf("status %+v", s)
	}

	// The author could replace the exception between the controller's read and write.
	w.allowed(ona, "replace", "--force", "-f", exceptionFile("hotfix", "", nil))
	cause := "the status of gate exception " + w.Namespace + "/hotfix has an approval that is not in approve.gate.fluxcd.io/requestedBy"
	w.refused(account, cause, status(by))
	w.allowed(account, `patch gtex hotfix --subresource=status --type=merge -p {"metadata":{"annotations":{"`+approveAt+`":"`+w.approvalOf("hotfix")+
		`","`+authors+`":"bob","`+approveBy+`":"forged"}},"status":{"observedGeneration":1}}`)
	w.stampedException("hotfix", "ona", "")
	w.allowed(alice, w.approval()...)
	w.refused(account, cause, status(strings.Replace(by, `alice`, `bob`, 1)))
	w.refused(account, cause, status(strings.Replace(by, `:1`, `:2`, 1)))
	w.allowed(account, status(by))
	w.allowed(alice, "annotate gtex hotfix "+approveAt+"-")
	w.allowed(account, status(activeCondition("Pending"))) // keeps the approval
	if got := w.exception("hotfix").Status.Approvals; len(got) != 1 || got[0].ApprovedBy != "alice" {
		t.Errorf("approvals %+v", got)
	}
	w.allowed(ona, "replace", "--force", "-f", exceptionFile("hotfix", `{"timeZone":"UTC","closePeriods":[{"name":"x","start":"00:00","end":"24:00"}]}`, nil))
	w.refused(account, cause, status(by))
	w.allowed(account, status(`"approvals":[]`))
}
