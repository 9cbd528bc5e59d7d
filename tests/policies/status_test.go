package policies

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// forgedStatus is what the controller remembers of an open request.
func forgedStatus() string {
	at := time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
	return `{"requests":[{"action":"open","source":"annotation","requestedAt":"` + at + `","acceptedAt":"` + at + `","state":"InForce"}]}`
}

// forge puts an open request into the memory of a Gate.
func forge(w *world, g *v1alpha1.Gate) {
	w.Helper()
	w.Must(json.Unmarshal([]byte(forgedStatus()), &g.Status))
}

var statusWrites = []attack{
	kubectl("merge patch", "patch gate GATE --subresource=status --type=merge -p "+`{"status":`+forgedStatus()+`}`),
	kubectl("JSON patch", `patch gate GATE --subresource=status --type=json -p [{"op":"add","path":"/status/memory","value":{"handledRequests":[{"action":"open","lastHandled":"x"}]}}]`),
	kubectl("the condition alone", `patch gate GATE --subresource=status --type=json -p [{"op":"replace","path":"/status/conditions/0/status","value":"True"}]`),
	kubectl("an annotation by way of the status", `patch gate GATE --subresource=status --type=merge -p {"metadata":{"annotations":{"`+openAt+`":"NOW"}},"status":{"observedGeneration":9}}`),
	{"update in Go", func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		g = g.DeepCopy()
		return "", w.Rewrite(g, func() error {
			forge(w, g)
			return p.Client.Status().Update(w.Context(), g)
		})
	}},
	{"patch in Go", func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		forged := w.get(g)
		before := forged.DeepCopy()
		forge(w, forged)
		return "", p.Client.Status().Patch(w.Context(), forged, client.MergeFrom(before))
	}},
	{"server-side apply", func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		file := w.file("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: " + g.Name + "}\nstatus: " + forgedStatus() + "\n")
		return p.kubectl(w.Context(), w.Namespace, "apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "--subresource=status", "-f", file)
	}},
	{"replace", func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		file := w.file("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: " + g.Name + "}\nspec: {default: closed}\nstatus: " + forgedStatus() + "\n")
		return p.kubectl(w.Context(), w.Namespace, "replace", "--subresource=status", "-f", file)
	}},
}

func TestNobodyButTheControllerWritesTheStatus(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	stan := w.as("stan", w.role([]string{"get", "patch", "update"}, []string{"gates", "gates/status"}))
	for _, a := range statusWrites {
		for _, p := range []*person{stan, w.clusterAdmin()} {
			t.Run(a.name+" by "+p.Name, func(t *testing.T) {
				w := w.on(t)
				w.refused(p, g, a, "user "+p.Name+" may not write the status of gate "+w.Namespace+"/production")
			})
		}
	}
	w.decided(g, metav1.ConditionFalse)
}

func TestNoRoleOfOursWritesTheStatus(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	all := w.as("otto", viewer, editor, opener)
	for _, a := range statusWrites {
		t.Run(a.name, func(t *testing.T) {
			w := w.on(t)
			w.refused(all, g, a, `User "otto" cannot`)
		})
	}
}

func TestAStatusSmuggledWithASpecOpensNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	w.allowed(edith, "patch", "gate", "production", "--type=merge", "-p", `{"spec":{"interval":"2m"},"status":`+forgedStatus()+`}`)
	w.Decided(g)
	update := g.DeepCopy()
	w.Must(w.Rewrite(update, func() error {
		forge(w, update)
		update.Spec.Interval.Duration = 3 * time.Minute
		return edith.Client.Update(w.Context(), update)
	}))
	manifest := func(name string) string {
		return w.file("apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: " + name + "}\nspec: {default: closed, interval: 4m}\nstatus: " + forgedStatus() + "\n")
	}
	w.allowed(edith, "replace", "-f", manifest("production"))
	w.allowed(edith, "apply", "--server-side", "--force-conflicts", "-f", manifest("production"))
	w.allowed(edith, "create", "-f", manifest("newborn"))
	g.Name = "newborn"
	w.decided(g, metav1.ConditionFalse)
	g.Name = "production"
	w.decided(g, metav1.ConditionFalse)
	if g.Spec.Interval.Duration != 4*time.Minute || len(g.Status.Memory.HandledRequests) > 0 {
		t.Errorf("spec %+v, status %+v", g.Spec, g.Status)
	}
}

// clusterAdmin returns a person who may do all that RBAC allows.
func (w *world) clusterAdmin() *person {
	w.Helper()
	if out, err := cluster.Kubectl(w.Context(), "create", "clusterrolebinding", "clara", "--clusterrole=cluster-admin", "--user=clara"); err != nil && !strings.Contains(out, "exists") {
		w.Fatal(err)
	}
	clara := w.as("clara")
	w.mayBy("clara", "any", "thing", "at.all")
	return clara
}
