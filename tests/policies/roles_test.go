package policies

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestAnOpenerOpensAndCloses(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at, openWhy+"=hotfix 1234")
	w.decided(g, metav1.ConditionTrue)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+at, "close.gate.fluxcd.io/reason=done")
	w.decided(g, metav1.ConditionFalse)
	if last := g.LatestRequest(); last.Action != v1alpha1.RequestClose || last.RequestedBy != "alice" || last.Message != "done" {
		t.Errorf("lastRequest is %+v", last)
	}
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", "reconcile.fluxcd.io/requestedAt=1")
	w.allowed(alice, "annotate", "gate", "production", openAt+"-", openWhy+"-", closeAt+"-")
	w.allowed(alice, "get", "gates")
}

func TestAnOpenerChangesNothingElse(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+now())
	w.allowed(w.clusterAdmin(), "annotate", "gate", "production", "owner=team-a")
	w.Decided(g)
	may := func(what string) string {
		return "user alice may not change " + what + " of gate " + w.Namespace + "/production: it needs the verb update"
	}
	merge := "patch gate GATE --type=merge -p "
	for _, tc := range []struct {
		attack
		cause string
	}{
		{kubectl("the default", merge+`{"spec":{"default":"opened"}}`), may("spec")},
		{kubectl("a window", merge+`{"spec":{"openPeriods":[{"name":"now","start":"00:00","end":"24:00"}]}}`), may("spec")},
		{kubectl("the targets", merge+`{"spec":{"targets":[]}}`), may("spec")},
		{kubectl("suspend", merge+`{"spec":{"suspend":true}}`), may("spec")},
		{kubectl("the spec by JSON patch", `patch gate GATE --type=json -p [{"op":"replace","path":"/spec/default","value":"opened"}]`), may("spec")},
		{kubectl("the spec along with a request", merge+`{"metadata":{"annotations":{"`+openAt+`":"NOW"}},"spec":{"default":"opened"}}`), may("spec")},
		{kubectl("a label", "label gate GATE a=b"), may("labels")},
		{kubectl("the finalizers", merge+`{"metadata":{"finalizers":null}}`), may("finalizers")},
		{kubectl("one more finalizer", `patch gate GATE --type=json -p [{"op":"add","path":"/metadata/finalizers/-","value":"example.com/stay"}]`), may("finalizers")},
		{kubectl("an owner", merge+`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"gone","uid":"1"}]}}`), may("ownerReferences")},
		{kubectl("another annotation", "annotate gate GATE kustomize.toolkit.fluxcd.io/reconcile=disabled"), may("annotations other than those of requests")},
		{kubectl("an annotation of somebody else", "annotate gate GATE owner-"), may("annotations other than those of requests")},
		{kubectl("several", merge+`{"metadata":{"labels":{"a":"b"}},"spec":{"default":"opened"}}`), may("spec, labels")},
		{apply("server-side apply", "apply --server-side --force-conflicts", map[string]string{"a": "b"}), may("annotations other than those of requests")},
		{kubectl("delete", "delete gate GATE"), `cannot delete resource "gates"`},
		{kubectl("delete all", "delete gates --all"), `cannot delete`},
		{apply("replace", "replace", nil), `cannot update resource "gates"`},
		{apply("replace by force", "replace --force", nil), `cannot delete resource "gates"`},
		{attack{"create", func(w *world, p *person, _ *v1alpha1.Gate) (string, error) {
			return p.kubectl(w.Context(), w.Namespace, "create", "-f", w.manifest("name: another", nil))
		}}, `cannot create resource "gates"`},
		{attack{"create by server-side apply", func(w *world, p *person, _ *v1alpha1.Gate) (string, error) {
			return p.kubectl(w.Context(), w.Namespace, "apply", "--server-side", "-f", w.manifest("name: another", nil))
		}}, `cannot create resource "gates"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := w.on(t)
			w.refused(alice, g, tc.attack, tc.cause)
		})
	}
	w.decided(g, metav1.ConditionFalse)
}

// A request that the controller has not yet seen could be withdrawn.
func TestWhoMayOnlyOpenCannotWithdrawARequestToClose(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	olga := w.as("olga", w.role([]string{"get", "patch", "open"}, []string{"gates"}))
	carl := w.as("carl", w.role([]string{"get", "patch", "close"}, []string{"gates"}))
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at, closeAt+"="+at)
	w.decided(g, metav1.ConditionFalse)
	w.refused(olga, g, kubectl("close", "annotate gate GATE "+closeAt+"-"), "user olga may not withdraw the request to close gate "+w.Namespace+"/production")
	w.refused(carl, g, kubectl("open", "annotate gate GATE "+openAt+"-"), "user carl may not withdraw the request to open gate "+w.Namespace+"/production")
	w.allowed(olga, "annotate", "gate", "production", openAt+"-")
	w.allowed(edith, "annotate", "gate", "production", closeAt+"-")
	w.stamped(g, closeBy, "")
}

func TestAnEditorEditsAndDeletes(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", editor, viewer)
	w.allowed(edith, "create", "-f", w.manifest("name: production", nil))
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"2m"}}`)
	w.allowed(edith, "label", "gate", "production", "a=b")
	w.allowed(edith, "annotate", "gate", "production", "a=b")
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", w.manifest("name: production", map[string]string{"c": "d"}))
	w.allowed(edith, "replace", "-f", w.manifest("name: production", nil))
	w.allowed(edith, "patch", "gate", "production", "--type=json", "-p", `[{"op":"add","path":"/metadata/annotations","value":null}]`)
	w.allowed(edith, "create", "-f", w.file(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"second","annotations":null,"labels":null},"spec":{"default":"closed"}}`))
	w.allowed(edith, "annotate", "gate", "second", "a=b")
	w.allowed(edith, "delete", "gate", "production")
	w.allowed(edith, "delete", "gates", "--all")
}

func TestAViewerOnlyLooks(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	victor := w.as("victor", viewer)
	w.allowed(victor, "get", "gate", "production")
	w.allowed(victor, "get", "gates")
	for _, a := range []attack{
		openings[0], kubectl("close", "annotate gate GATE "+closeAt+"=NOW"), kubectl("label", "label gate GATE a=b"),
		kubectl("spec", `patch gate GATE --type=merge -p {"spec":{"default":"opened"}}`), kubectl("delete", "delete gate GATE"),
		apply("replace", "replace", nil), apply("apply", "apply --server-side", nil),
	} {
		w.refused(victor, g, a, `User "victor" cannot`)
	}
	w.decided(g, metav1.ConditionFalse)
}

func TestAClusterAdminDoesItAll(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	clara := w.clusterAdmin()
	at := now()
	w.allowed(clara, "annotate", "gate", "production", openAt+"="+at, openBy+"=somebody else", "a=b")
	w.stamped(g, openBy, "clara")
	w.decided(g, metav1.ConditionTrue)
	w.allowed(clara, "annotate", "gate", "production", closeAt+"="+at)
	w.decided(g, metav1.ConditionFalse)
	w.allowed(clara, "patch", "gate", "production", "--type=merge", "-p", `{"metadata":{"finalizers":null,"labels":{"a":"b"}},"spec":{"interval":"2m"}}`)
	w.allowed(clara, "delete", "gate", "production")
}

// The controller itself may write the finalizer.
func TestTheControllerEditsFinalizersOnly(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	for _, a := range []attack{
		kubectl("spec", `patch gate GATE --type=merge -p {"spec":{"default":"opened"}}`),
		kubectl("label", "label gate GATE a=b"),
		kubectl("annotation", "annotate gate GATE a=b"),
	} {
		w.refused(account, g, a, "user system:serviceaccount:gating-system:gating-controller may not change")
	}
	w.refused(account, g, openings[0], "may not open or close gate "+w.Namespace+"/production in the name of another")
	w.allowed(account, "patch", "gate", "production", "--type=json", "-p", `[{"op":"remove","path":"/metadata/finalizers"}]`)
}
