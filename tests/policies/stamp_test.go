package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// stamped checks who is said to have requested.
func (w *world) stamped(g *v1alpha1.Gate, annotation, want string) {
	w.Helper()
	if got := w.get(g).Annotations[annotation]; got != want {
		w.Errorf("%s is %q, want %q", annotation, got, want)
	}
}

func TestStatusAndEventNameWhoOpenedAsTheAPIServerKnowsThem(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openWhy+"=hotfix 1234", openBy+"=bob")
	w.decided(g, metav1.ConditionTrue)
	if last := g.LatestRequest(); last == nil || last.RequestedBy != "alice" || last.Message != "hotfix 1234" {
		t.Errorf("lastRequest is %+v", last)
	}
	w.Eventually("an event names alice", func() error {
		events := &corev1.EventList{}
		if err := cluster.Client.List(w.Context(), events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == v1alpha1.RequestAcceptedReason && strings.HasSuffix(e.Message, " by alice: hotfix 1234") {
				return nil
			}
		}
		return fmt.Errorf("not among %d", len(events.Items))
	})
}

func TestAForgedRequestedByIsOverwritten(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice := w.as("alice", opener)
	for _, action := range []string{"open", "close"} {
		at, by := action+".gate.fluxcd.io/requestedAt", action+".gate.fluxcd.io/requestedBy"
		w.allowed(alice, "annotate", "gate", "production", at+"="+now(), by+"=bob")
		w.stamped(g, by, "alice")
		for _, forgery := range []string{by + "=bob", by + "-", by + "="} {
			w.allowed(alice, "annotate", "--overwrite", "gate", "production", forgery)
			w.stamped(g, by, "alice")
		}
		w.allowed(w.as("olga", w.role([]string{"get", "patch"}, []string{"gates"})), "annotate", "--overwrite", "gate", "production", by+"=bob")
		w.stamped(g, by, "alice")
	}
	edith := w.as("edith", editor, viewer)
	for _, args := range []string{
		`patch gate production --type=merge -p {"metadata":{"annotations":{"open.gate.fluxcd.io/requestedBy":"bob"}}}`,
		`patch gate production --type=json -p [{"op":"replace","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedBy","value":"bob"}]`,
		`patch gate production --type=json -p [{"op":"remove","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedBy"}]`,
	} {
		w.allowed(edith, strings.Fields(args)...)
		w.stamped(g, openBy, "alice")
		w.stamped(g, closeBy, "alice")
	}
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", w.manifest("name: production", map[string]string{openBy: "bob"}))
	w.stamped(g, openBy, "alice")
}

// The next request does not repeat what somebody said with the last one.
func TestTheReasonOfSomebodyElseIsRemoved(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob, edith := w.as("alice", opener), w.as("bob", opener), w.as("edith", editor, viewer)
	for _, action := range []string{"open", "close"} {
		at, why := action+".gate.fluxcd.io/requestedAt=", action+".gate.fluxcd.io/reason"
		now := func() string { return time.Now().UTC().Format(time.RFC3339Nano) } // twice in a second
		annotate := func(p *person, annotations ...string) {
			w.Helper()
			w.allowed(p, append([]string{"annotate", "--overwrite", "gate", "production"}, annotations...)...)
		}
		annotate(alice, at+now(), why+"=incident 5678")
		w.stamped(g, why, "incident 5678")
		annotate(alice, at+now(), why+"=incident 5678") // her own, once more
		w.stamped(g, why, "incident 5678")
		annotate(bob, at+now())
		w.stamped(g, why, "")
		w.stamped(g, action+".gate.fluxcd.io/requestedBy", "bob")
		annotate(alice, at+now(), why+"=incident 9")
		w.stamped(g, why, "incident 9")
		annotate(edith, "a="+action) // no request
		w.stamped(g, why, "incident 9")
		w.stamped(g, action+".gate.fluxcd.io/requestedBy", "alice")
	}
}

func TestARequestedByWithoutARequestIsRemoved(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", editor, viewer)
	w.allowed(edith, "create", "-f", w.manifest("name: production", map[string]string{openBy: "bob", closeBy: "bob", "a": "b"}))
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: w.Namespace}}
	check := func() {
		t.Helper()
		if a := w.get(g).Annotations; len(a) != 1 || a["a"] != "b" {
			t.Errorf("annotations %v", a)
		}
	}
	check()
	w.allowed(edith, "annotate", "gate", "production", openBy+"=bob")
	check()
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", w.manifest("name: production", map[string]string{closeBy: "bob", "a": "b"}))
	check()
}

func TestTheFirstWhoRequestsStaysUntilTheRequestChanges(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, bob := w.as("alice", opener), w.as("bob", opener)
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at, openWhy+"=release")
	w.decided(g, metav1.ConditionTrue)

	w.allowed(bob, "annotate", "--overwrite", "gate", "production", openAt+"="+at, openWhy+"=release")
	if got := w.get(g).ResourceVersion; got != g.ResourceVersion {
		t.Error("the same request once more changed the gate")
	}
	w.stamped(g, openBy, "alice")
	w.allowed(bob, "annotate", "gate", "production", "reconcile.fluxcd.io/requestedAt=1", "--overwrite")
	w.stamped(g, openBy, "alice")
	w.allowed(bob, "annotate", "gate", "production", openWhy+"-")
	w.stamped(g, openBy, "alice")

	// Nobody puts words into the mouth of another.
	w.allowed(bob, "annotate", "gate", "production", openWhy+"=because I can")
	w.stamped(g, openBy, "bob")
	w.decided(g, metav1.ConditionTrue)
	if last := g.LatestRequest(); last.RequestedBy != "alice" || last.Message != "release" {
		t.Errorf("what was handled has changed: %+v", last)
	}
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openAt+"="+stamp(time.Now().Add(-time.Hour)))
	w.stamped(g, openBy, "alice")
	w.allowed(bob, "annotate", "gate", "production", openAt+"-")
	w.stamped(g, openBy, "")
}

func TestAGateThatIsBornWithARequestIsStamped(t *testing.T) {
	w := newWorld(t)
	vera := w.as("vera", editor, opener)
	request := map[string]string{openAt: now(), openBy: "alice"}
	for _, command := range []string{"create -f", "apply --server-side -f", "apply -f"} {
		name := "by-" + strings.ReplaceAll(strings.Fields(command)[0]+strings.Fields(command)[1], "-", "")
		w.allowed(vera, append(strings.Fields(command), w.manifest("name: "+name, request))...)
		w.stamped(&v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}, openBy, "vera")
	}
	name := strings.TrimSpace(w.allowed(vera, "create", "-o=jsonpath={.metadata.name}", "-f", w.manifest("generateName: generated-", request)))
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.Namespace}}
	w.stamped(g, openBy, "vera")
	w.decided(g, metav1.ConditionTrue)
}

func TestTheControllerNamesForWhomItAsks(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	ours := "GateReceiver " + w.Namespace + "/ci"
	at := now()
	w.allowed(account, "annotate", "gate", "production", openAt+"="+at, v1alpha1.OpenReceivedAnnotation+"="+at, openBy+"="+ours)
	w.stamped(g, openBy, ours)
	w.decided(g, metav1.ConditionTrue)
	if last := g.LatestRequest(); last.RequestedBy != ours || last.Source != v1alpha1.SourceWebhook {
		t.Errorf("lastRequest is %+v", last)
	}
	w.allowed(account, "annotate", "gate", "production", closeAt+"="+now()+"/30m", closeBy+"="+ours)
	w.decided(g, metav1.ConditionFalse)

	other := w.as("system:serviceaccount:gating-system:other", opener)
	w.allowed(other, "annotate", "--overwrite", "gate", "production", openAt+"="+stamp(time.Now().Add(-time.Minute)), openBy+"="+ours)
	w.stamped(g, openBy, "system:serviceaccount:gating-system:other")
	w.Decided(g)
	w.Decided(g)
	// The name of the last who asked would be that of who asks next.
	overwrite := "annotate --overwrite gate GATE " + openAt + "=NOW"
	cause := "may not open or close gate " + w.Namespace + "/production in the name of another: requestedBy must begin with GateReceiver " + w.Namespace + "/"
	w.refused(account, g, kubectl("as the last", overwrite), cause)
	w.refused(account, g, kubectl("as somebody", overwrite+" "+openBy+"=alice"), cause)
	w.refused(account, g, kubectl("as nobody", overwrite+" "+openBy+"-"), cause)
	w.refused(account, g, attack{"for a receiver elsewhere", func(w *world, p *person, _ *v1alpha1.Gate) (string, error) {
		return p.kubectl(w.Context(), w.Namespace, "annotate", "--overwrite", "gate", "production", closeAt+"="+now(), closeBy+"=GateReceiver apps/ci")
	}}, cause)
	w.allowed(account, "annotate", "--overwrite", "gate", "production", "reconcile.fluxcd.io/requestedAt=1")
}

// Somebody who claims to be a webhook is named as who they are.
func TestNobodyPassesForAReceiver(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	ours := "GateReceiver " + w.Namespace + "/ci"
	alice := w.as("alice", opener)
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+now(), openBy+"="+ours)
	w.stamped(g, openBy, "alice")
	w.allowed(alice, "annotate", "--overwrite", "gate", "production", openBy+"="+ours)
	w.stamped(g, openBy, "alice")
	w.allowed(alice, "patch", "gate", "production", "--type=json", "-p",
		`[{"op":"add","path":"/metadata/annotations/close.gate.fluxcd.io~1requestedAt","value":"`+now()+`"},{"op":"add","path":"/metadata/annotations/close.gate.fluxcd.io~1requestedBy","value":"`+ours+`"}]`)
	w.stamped(g, closeBy, "alice")
	w.decided(g, metav1.ConditionFalse)
	if last := g.LatestRequest(); last.RequestedBy != "alice" || last.Source != v1alpha1.SourceAnnotation {
		t.Errorf("lastRequest is %+v", last)
	}
	w.refused(w.as("edith", editor, viewer), g, kubectl("without the verb", "annotate --overwrite gate GATE "+openAt+"=NOW"), "user edith may not open gate")
}

func TestWhoImpersonatesCanDoWhatTheOtherCan(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	w.as("alice", opener)
	w.as("edith", editor, viewer)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{v1alpha1.GroupVersion.Group}, Resources: []string{"gates"}, Verbs: []string{"get", "patch", "open"}},
	}}
	w.Create(role)
	ivan := w.as("ivan", role.Name)
	impersonator := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}, ResourceNames: []string{"edith", "alice"}},
	}}
	w.Create(impersonator)
	w.Must(cluster.Client.Create(w.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: impersonator.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: impersonator.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ivan"}},
	}))
	w.Eventually("ivan may impersonate", func() error {
		_, err := ivan.kubectl(w.Context(), w.Namespace, "--as=edith", "get", "gates")
		return err
	})
	w.refused(ivan, g, kubectl("as an editor", "--as=edith annotate gate GATE "+openAt+"=NOW"), "user edith may not open gate")
	w.refused(ivan, g, kubectl("as somebody else", "--as=clara annotate gate GATE "+openAt+"=NOW"), `cannot impersonate resource "users"`)
	w.refused(ivan, g, kubectl("as the controller", "--as=system:serviceaccount:gating-system:gating-controller annotate gate GATE "+openAt+"=NOW"), "cannot impersonate")
	w.allowed(ivan, "--as=alice", "annotate", "gate", "production", openAt+"="+now())
	w.stamped(g, openBy, "alice")
}
