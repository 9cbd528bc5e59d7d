package policies

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// verbsOn returns the verbs that a ClusterRole has on each resource of the project, sorted.
func (w *world) verbsOn(name string) (map[string][]string, error) {
	role := &rbacv1.ClusterRole{}
	if err := cluster.Client.Get(w.Context(), client.ObjectKey{Name: name}, role); err != nil {
		return nil, err
	}
	verbs := map[string][]string{}
	for _, rule := range role.Rules {
		if slices.Contains(rule.APIGroups, v1alpha1.GroupVersion.Group) {
			for _, resource := range rule.Resources {
				verbs[resource] = append(verbs[resource], rule.Verbs...)
				slices.Sort(verbs[resource])
			}
		}
	}
	return verbs, nil
}

func TestDocumentedRolesAreShipped(t *testing.T) {
	w := newWorld(t)
	look, edit := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "patch", "update"}
	for name, want := range map[string]map[string][]string{
		viewer:            {"gates": look, "gateexceptions": look, "gatedsources": look},
		sourceEditor:      {"gatedsources": edit},
		sourceApprover:    {"gatedsources": {"approve", "get", "list", "patch", "watch"}},
		editor:            {"gates": edit},
		opener:            {"gates": {"close", "get", "list", "open", "patch", "watch"}, "gateexceptions": look},
		exceptionEditor:   {"gateexceptions": edit},
		approver:          {"gates": {"approve", "get", "list", "patch", "watch"}},
		emergencyOpener:   {"gates": {"close", "emergency", "get", "list", "open", "patch", "watch"}},
		exceptionApprover: {"gateexceptions": {"approve", "get", "list", "patch", "watch"}},
		receiverViewer:    {"gatereceivers": look},
		receiverEditor:    {"gatereceivers": edit},
		calendarViewer:    {"calendarfeeds": look},
		calendarEditor:    {"calendarfeeds": edit},
	} {
		got, err := w.verbsOn(name)
		w.Must(err)
		w.is(name, got, want)
	}
}

// The real controller aggregates the roles.
func TestBuiltInRolesViewAndEditButDoNotOpenOrApprove(t *testing.T) {
	w := newWorld(t)
	manager, err := cluster.StartControllerManager(w.Context(), "clusterrole-aggregation-controller")
	w.Must(err)
	t.Cleanup(func() {
		if err := manager.Stop(); err != nil {
			t.Error(err)
		}
	})
	look, edit := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for name, verbs := range map[string][]string{"view": look, "edit": edit, "admin": edit} {
		want := map[string][]string{"gates": verbs, "gateexceptions": verbs, "gatedsources": verbs}
		if name != "view" { // the path of a generic receiver suffices to open, and that of a calendar to read
			want["gatereceivers"], want["calendarfeeds"] = verbs, verbs
		}
		w.until(name+" is aggregated", func() (bool, any) {
			got, err := w.verbsOn(name)
			return err == nil && reflect.DeepEqual(got, want), got
		})
	}
	g := w.gate("production")
	for _, role := range []string{"edit", "admin"} {
		p := w.as("member-"+role, role)
		w.mayBy(p.Name, "update", "gates", v1alpha1.GroupVersion.Group)
		w.allowed(p, "label", "gate", "production", role+"=b")
		w.refused(p, "user "+p.Name+" may not open gate", openings[0])
		w.createException(p, role, `{"gateRef":{"name":"`+role+`"}}`, nil)
		w.refused(p, "user "+p.Name+" may not approve gate exception", "annotate", "gtex", role, approveAt+"="+w.approvalOf(role))
		w.refused(p, "user "+p.Name+" may not create a receiver that opens gate", "create", "-f", receiverFile(role, ""))
		w.refused(p, w.mayNotHold(p.Name, "Kustomizations", w.Namespace, role, apps), "create", "-f", holdFile(role, own))
		w.refused(p, w.mayNotHold(p.Name, "Kustomizations", "kube-system", "production", apps), "patch", "gate", "production", "--type=merge",
			`-p={"spec":{"targets":[{"kind":"Kustomization","name":"*","namespace":"kube-system"}]}}`)
	}
	member := w.as("member-view", "view")
	w.mayBy(member.Name, "get", "gates", v1alpha1.GroupVersion.Group)
	w.refused(member, `cannot patch resource "gates"`, "label gate production a=b")
	w.refused(member, `cannot list resource "gatereceivers"`, "get", "gatereceivers")
	w.refused(member, `cannot patch resource "gateexceptions"`, "label", "gtex", "edit", "a=b")
	w.decided(g, metav1.ConditionFalse)
}

func TestOpenerOpensAndClosesInOwnName(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at, openWhy+"=hotfix 1234", openBy+"=bob")
	w.decided(g, metav1.ConditionTrue)
	w.requested(g, "alice", "hotfix 1234", v1alpha1.SourceAnnotation)
	w.emitted(v1alpha1.RequestAcceptedReason, " by alice: hotfix 1234")
	w.allowed(alice, "annotate gate production "+closeAt+"="+at+" close.gate.fluxcd.io/reason=done")
	w.decided(g, metav1.ConditionFalse)
	w.requested(g, "alice", "done", v1alpha1.SourceAnnotation)
	w.allowed(alice, "annotate --overwrite gate production reconcile.fluxcd.io/requestedAt=1")
	w.allowed(alice, "annotate gate production "+openAt+"- "+openWhy+"- "+closeAt+"-")
	w.allowed(alice, "get gates")
}

// mayNotEdit makes a person change all parts of an object, with and without a spec, and expects refusals because that needs the verb
// update.
func (w *world) mayNotEdit(p *person, what, object, spec string) {
	w.Helper()
	merge := "patch " + object + " --type=merge -p "
	refused := func(part string, commands ...string) {
		w.Helper()
		for _, command := range commands {
			w.refused(p, "user "+p.Name+" may not change "+part+" of "+what+" "+w.Namespace+"/"+strings.Fields(object)[1]+": it needs the verb update", command)
		}
	}
	refused("spec", merge+`{"spec":`+spec+`}`, merge+`{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":"1"}},"spec":`+spec+`}`)
	refused("labels", "label "+object+" a=b", "label --overwrite "+object+" a=b gating.toolkit.fluxcd.io/gate=x")
	refused("spec, labels", merge+`{"metadata":{"labels":{"a":"b"}},"spec":`+spec+`}`)
	refused("ownerReferences", merge+`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`)
	others := map[string]string{"gate": "requests", "gate exception": "approvals"}[what]
	refused("annotations other than those of "+others, "annotate "+object+" kustomize.toolkit.fluxcd.io/reconcile=disabled", "annotate "+object+" owner-")
	if p.Name == controllerName {
		return
	}
	refused("finalizers", merge+`{"metadata":{"finalizers":null}}`, `patch `+object+` --type=json -p [{"op":"add","path":"/metadata/finalizers/-","value":"example.com/stay"}]`)
}

func TestOpenerChangesNothingElse(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now())
	w.allowed(w.clusterAdmin(), "annotate", "gate", "production", "owner=team-a")
	w.Decided(g)
	for _, spec := range []string{`{"default":"opened"}`, `{"openPeriods":[{"name":"now","start":"00:00","end":"24:00"}]}`, `{"targets":[]}`, `{"suspend":true}`} {
		w.mayNotEdit(alice, "gate", "gate production", spec)
	}
	const spec, more = "user alice may not change spec of gate ", "user alice may not change annotations other than those of requests"
	for _, tc := range []struct{ command, cause string }{
		{`patch gate production --type=json -p [{"op":"replace","path":"/spec/default","value":"opened"}]`, spec},
		{`patch gate production --type=merge -p {"metadata":{"annotations":{"` + openAt + `":"NOW"}},"spec":{"default":"opened"}}`, spec},
		{"apply --server-side --force-conflicts -f " + gateFile("production", map[string]string{"a": "b"}), more},
		{"delete gate production", `cannot delete resource "gates"`},
		{"delete gates --all", `cannot delete`},
		{"replace -f " + gateFile("production", nil), `cannot update resource "gates"`},
		{"replace --force -f " + gateFile("production", nil), `cannot delete resource "gates"`},
		{"create -f " + gateFile("another", nil), `cannot create resource "gates"`},
		{"apply --server-side -f " + gateFile("another", nil), `cannot create resource "gates"`},
	} {
		w.refused(alice, tc.cause, tc.command)
	}
	w.decided(g, metav1.ConditionFalse)
}

// Otherwise a request that the controller has not observed yet could be withdrawn.
func TestOpenerCannotWithdrawClose(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	olga := w.as("olga", w.role([]string{"get", "patch", "open"}, []string{"gates"}))
	carl := w.as("carl", w.role([]string{"get", "patch", "close"}, []string{"gates"}))
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at, closeAt+"="+at)
	w.decided(g, metav1.ConditionFalse)
	w.refused(olga, "user olga may not withdraw the request to close gate "+w.Namespace+"/production", "annotate gate production "+closeAt+"-")
	w.refused(carl, "user carl may not withdraw the request to open gate "+w.Namespace+"/production", "annotate gate production "+openAt+"-")
	w.allowed(olga, "annotate", "gate", "production", openAt+"-")
	w.allowed(edith, "annotate", "gate", "production", closeAt+"-")
	w.stamped(g, closeBy, "")
}

func TestEditorEditsAndDeletes(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", editor, viewer)
	for _, command := range []string{
		"create -f " + gateFile("production", nil), `patch gate production --type=merge -p {"spec":{"interval":"2m"}}`,
		"label gate production a=b", "annotate gate production a=b", "replace -f " + gateFile("production", nil),
		"apply --server-side --force-conflicts -f " + gateFile("production", map[string]string{"c": "d"}),
		`patch gate production --type=json -p [{"op":"add","path":"/metadata/annotations","value":null}]`,
		"create -f " + strings.Replace(gateFile("second", nil), `"metadata":{`, `"metadata":{"annotations":null,"labels":null,`, 1),
		"annotate gate second a=b", "delete gate production", "delete gates --all",
	} {
		w.allowed(edith, command)
	}
}

func TestClusterAdminMayDoEverything(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	clara := w.clusterAdmin()
	at := now()
	w.allowed(clara, "annotate gate production "+openAt+"="+at+" "+openBy+"=other a=b")
	w.stamped(g, openBy, "clara")
	w.decided(g, metav1.ConditionTrue)
	w.allowed(clara, "annotate gate production "+closeAt+"="+at)
	w.decided(g, metav1.ConditionFalse)
	w.allowed(clara, `patch gate production --type=merge -p {"metadata":{"finalizers":null,"labels":{"a":"b"}},"spec":{"interval":"2m"}}`)
	w.allowed(clara, "delete gate production")
}

// The controller may only write the finalizer.
func TestControllerEditsOnlyFinalizers(t *testing.T) {
	w := newWorld(t)
	w.gate("production")
	w.allowed(admin, "annotate gate production owner=team-a")
	account := w.as(controllerName)
	w.mayNotEdit(account, "gate", "gate production", `{"default":"opened"}`)
	w.refused(account, "may not open or close gate "+w.Namespace+"/production on behalf of another requester", openings[0])
	w.allowed(account, `patch gate production --type=json -p [{"op":"remove","path":"/metadata/finalizers"}]`)
}

// governed is a kind whose verb patch only permits annotations.
type governed struct {
	kind, resource, what, role, annotation string
	// spec has a field that Git must be able to remove. small does not have it.
	spec, small string
}

var bothKinds = []governed{
	{
		v1alpha1.GateKind, "gate", "gate", opener, openAt,
		`{"default":"closed","openPeriods":[{"name":"always","start":"00:00","end":"24:00"}]}`, `{"default":"closed"}`,
	},
	{
		v1alpha1.GateExceptionKind, "gtex", "gate exception", exceptionApprover, approveAt,
		`{"gateRef":{"name":"x"},"default":"closed","timeZone":"UTC","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-08T00:00:00Z","openPeriods":[{"name":"always","start":"00:00","end":"24:00"}]}`,
		`{"gateRef":{"name":"x"},"default":"closed","timeZone":"UTC","validFrom":"2099-01-01T00:00:00Z","validUntil":"2099-01-08T00:00:00Z"}`,
	},
}

// of returns the manifest of an object in a file.
func (k governed) of(spec string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"owned"},"spec":%s}`, v1alpha1.GroupVersion, k.kind, spec)
}

// value returns a new value for the annotation.
func (k governed) value(w *world) string {
	w.Helper()
	if k.annotation == approveAt {
		return w.approvalOf("owned")
	}
	return time.Now().UTC().Format(time.RFC3339Nano)
}

// owners returns the field managers of the spec, as text.
func (k governed) owners(w *world) string {
	w.Helper()
	var owners []string
	for _, f := range k.live(w).GetManagedFields() {
		if f.FieldsV1 != nil && strings.Contains(f.FieldsV1.GetRawString(), `"f:spec"`) {
			owner := f.Manager
			if f.APIVersion != v1alpha1.GroupVersion.String() {
				owner += " in " + f.APIVersion
			}
			owners = append(owners, owner)
		}
	}
	return strings.Join(owners, ",")
}

// live returns the object.
func (k governed) live(w *world) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object(v1alpha1.GroupVersion.String(), k.kind, w.Key("owned"))
	w.Read(obj)
	return obj
}

// Git cannot remove a field that another manager owns, too.
func TestPatcherOwnsNoSpecFields(t *testing.T) {
	for _, k := range bothKinds {
		t.Run(k.kind, func(t *testing.T) {
			w := newWorld(t)
			flux, alice := w.as("flux", editor, exceptionEditor, viewer), w.as("alice", k.role)
			apply := func(manager, spec string, more ...string) []string {
				return append([]string{"apply", "--server-side", "--field-manager=" + manager, "-f", k.of(spec)}, more...)
			}
			w.allowed(flux, apply("kustomize-controller", k.spec)...)
			w.until("the controller has set its finalizer", func() (bool, any) { return len(k.live(w).GetFinalizers()) > 0, nil })
			cause := "user alice may not change who owns the spec of " + k.what + " " + w.Namespace + "/owned: it needs the verb update on "
			own := func() { w.is("the owners of the spec", k.owners(w), "kustomize-controller") }
			patch := "patch " + k.resource + " owned "
			for _, args := range [][]string{
				apply("evil", k.spec), apply("evil", k.spec, "--force-conflicts"), apply("evil", k.small),
				{patch + `--type=merge -p {"metadata":{"managedFields":[{}]}}`},
				{patch + `--type=json -p [{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`},
				{patch + `--type=json -p [{"op":"replace","path":"/metadata/managedFields/0/manager","value":"evil"}]`},
				{patch + `--type=merge -p {"metadata":{"annotations":{"` + k.annotation + `":"` + k.value(w) + `"},"managedFields":[{}]}}`},
			} {
				w.refused(alice, cause, args...)
				own()
			}
			w.refused(alice, "user alice may not change spec of "+k.what, apply("kustomize-controller", k.small, "--force-conflicts")...) // without the periods
			// Since 1.37, Kubernetes itself keeps the managed fields if an entry has an unknown version.
			_, _ = alice.kubectl(w.Context(), w.Namespace, patch+`--type=json -p [{"op":"replace","path":"/metadata/managedFields/0/apiVersion","value":"gating.toolkit.fluxcd.io/v0"}]`)
			own()
			w.allowed(alice, "annotate", k.resource, "owned", k.annotation+"="+k.value(w))
			w.allowed(flux, apply("kustomize-controller", k.small)...)
			if spec := k.live(w).Object["spec"]; strings.Contains(fmt.Sprint(spec), "openPeriods") {
				t.Errorf("Git has no periods, the cluster has %v", spec)
			}
			w.allowed(flux, apply("second", k.small)...) // with the verb update
		})
	}
}

// A user who may patch can annotate an object, regardless of how it was created.
func TestPatcherMayAnnotateReceiver(t *testing.T) {
	for _, k := range bothKinds {
		t.Run(k.kind, func(t *testing.T) {
			w := newWorld(t)
			flux, alice := w.as("flux", editor, exceptionEditor, viewer), w.as("alice", k.role)
			var periods []string
			for i := range 100 {
				periods = append(periods, fmt.Sprintf(`{"name":"w%d","daysOfWeek":["Monday","Friday"],"start":"00:00","end":"24:00","timeZone":"Europe/Oslo"}`, i))
			}
			many := strings.Replace(k.spec, `{"name":"always","start":"00:00","end":"24:00"}`, strings.Join(periods, ","), 1)
			for _, command := range []string{
				"create", "apply", "apply --server-side", "apply --server-side --field-manager=kustomize-controller",
			} {
				spec := k.spec
				if strings.HasSuffix(command, "kustomize-controller") {
					spec = many
				}
				w.allowed(flux, append(strings.Fields(command), "-f", k.of(spec))...)
				for range 2 {
					w.allowed(alice, "annotate", "--overwrite", k.resource, "owned", k.annotation+"="+k.value(w))
					w.allowed(alice, "annotate", "--overwrite", k.resource, "owned", "reconcile.fluxcd.io/requestedAt="+k.value(w))
				}
				w.allowed(alice, "annotate", k.resource, "owned", k.annotation+"-")
				w.allowed(flux, "delete", k.resource, "owned") // after the controller has removed its finalizer
			}
		})
	}
}
