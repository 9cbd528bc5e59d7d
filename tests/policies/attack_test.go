package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	openAt  = v1alpha1.OpenRequestedAtAnnotation
	openBy  = v1alpha1.OpenRequestedByAnnotation
	openWhy = v1alpha1.OpenReasonAnnotation
	closeAt = v1alpha1.CloseRequestedAtAnnotation
	closeBy = v1alpha1.CloseRequestedByAnnotation
)

// attack tries to open a Gate and returns what the API server said.
type attack struct {
	name string
	try  func(w *world, p *person, g *v1alpha1.Gate) (string, error)
}

// kubectl returns an attack by kubectl. GATE stands for the Gate and NOW for the time,
// to the nanosecond: the second may be in the Gate already, which is not a new request.
func kubectl(name, command string) attack {
	return attack{name, func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		replacer := strings.NewReplacer("GATE", g.Name, "NOW", time.Now().UTC().Format(time.RFC3339Nano))
		args := strings.Fields(replacer.Replace(command))
		return p.kubectl(w.Context(), w.Namespace, args...)
	}}
}

// apply returns an attack by a manifest of the Gate with annotations.
func apply(name, command string, annotations map[string]string) attack {
	return attack{name, func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		file := w.manifest("name: "+g.Name, annotations)
		return p.kubectl(w.Context(), w.Namespace, append(strings.Fields(command), "-f", file)...)
	}}
}

var openings = []attack{
	kubectl("annotate", "annotate gate GATE "+openAt+"=NOW"),
	kubectl("annotate and overwrite", "annotate --overwrite gate GATE "+openAt+"=NOW "+openWhy+"=hotfix"),
	kubectl("annotate all gates", "annotate gates --all "+openAt+"=NOW"),
	kubectl("annotate with a forged requestedBy", "annotate gate GATE "+openAt+"=NOW "+openBy+"=alice"),
	kubectl("a planned opening", "annotate gate GATE "+openAt+"="+stamp(time.Now().Add(time.Hour))),
	kubectl("a value that is not a time", "annotate gate GATE "+openAt+"=tomorrow"),
	kubectl("an empty value", "annotate gate GATE "+openAt+"="),
	kubectl("a reason for the next who opens", "annotate gate GATE "+openWhy+"=approved"),
	kubectl("a dry run", "annotate gate GATE --dry-run=server "+openAt+"=NOW"),
	kubectl("merge patch", `patch gate GATE --type=merge -p {"metadata":{"annotations":{"`+openAt+`":"NOW"}}}`),
	kubectl("JSON patch of one annotation", `patch gate GATE --type=json -p [{"op":"add","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedAt","value":"NOW"}]`),
	kubectl("JSON patch of all annotations", `patch gate GATE --type=json -p [{"op":"add","path":"/metadata/annotations","value":{"`+openAt+`":"NOW"}}]`),
	kubectl("JSON patch that copies", `patch gate GATE --type=json -p [{"op":"copy","from":"/metadata/creationTimestamp","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedAt"}]`),
	apply("server-side apply", "apply --server-side", map[string]string{openAt: now()}),
	apply("server-side apply by force", "apply --server-side --force-conflicts --field-manager=kustomize-controller", map[string]string{openAt: now()}),
	apply("server-side apply as the controller", "apply --server-side --force-conflicts --field-manager=gating-controller", map[string]string{openAt: now()}),
	apply("client-side apply", "apply", map[string]string{openAt: now()}),
	apply("replace", "replace", map[string]string{openAt: now()}),
	{"update by a client in Go", func(w *world, p *person, g *v1alpha1.Gate) (string, error) {
		g = g.DeepCopy()
		return "", w.Rewrite(g, func() error {
			g.Annotations[openAt] = now()
			return p.Client.Update(w.Context(), g)
		})
	}},
}

func TestNoPatchOpensAGateWithoutTheVerb(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	patrick := w.as("patrick", w.role([]string{"get", "list", "patch", "update"}, []string{"gates"}))
	for _, a := range openings {
		for _, p := range []*person{edith, patrick} {
			t.Run(a.name+" by "+p.Name, func(t *testing.T) {
				w := w.on(t)
				w.refused(p, g, a, fmt.Sprintf("user %s may not open gate %s/production: a request to open needs the verb open", p.Name, w.Namespace))
			})
		}
	}
	w.decided(g, metav1.ConditionFalse)
}

// refused makes an attack and checks that it is refused for a cause and leaves
// no trace.
func (w *world) refused(p *person, g *v1alpha1.Gate, a attack, cause string) {
	w.Helper()
	before := w.get(g)
	out, err := a.try(w, p, g)
	if err == nil {
		w.Errorf("%s: allowed: %s", a.name, out)
	} else if !strings.Contains(err.Error(), cause) {
		w.Errorf("%s: refused\nfor   %v\nnot for %q", a.name, err, cause)
	}
	if after := w.get(g); after.ResourceVersion != before.ResourceVersion {
		w.Errorf("%s: the gate has changed\nfrom %+v\nto   %+v", a.name, before, after)
	}
}

func TestACloseRequestNeedsItsOwnVerb(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	olga := w.as("olga", w.role([]string{"get", "patch", "open"}, []string{"gates"}))
	w.refused(olga, g, kubectl("close", "annotate gate GATE "+closeAt+"=NOW"), "user olga may not close gate "+w.Namespace+"/production: a request to close needs the verb close")
	w.refused(olga, g, kubectl("reason", "annotate gate GATE close.gate.fluxcd.io/reason=x"), "may not close")
	w.allowed(olga, "annotate", "gate", "production", openAt+"="+now())
	w.decided(g, metav1.ConditionTrue)
}

func TestTheVerbIsThatOfOneGateInOneNamespace(t *testing.T) {
	home, away := newWorld(t), newWorld(t)
	g, other := home.gate("production"), home.gate("staging")
	foreign := away.gate("production")
	nora := home.as("nora", home.role([]string{"open"}, []string{"gates"}, "production"), editor, viewer)
	away.as("nora", editor, viewer)
	open := kubectl("open", "annotate gate GATE "+openAt+"=NOW")
	home.refused(nora, other, open, "user nora may not open gate "+home.Namespace+"/staging")
	away.refused(nora, foreign, open, "user nora may not open gate "+away.Namespace+"/production")
	home.allowed(nora, "annotate", "gate", "production", openAt+"="+now())
	home.decided(g, metav1.ConditionTrue)
	away.decided(foreign, metav1.ConditionFalse)
}

func TestNoGateIsBornOpenWithoutTheVerb(t *testing.T) {
	w := newWorld(t)
	edith := w.as("edith", editor, viewer)
	nora := w.as("nora", w.role([]string{"open"}, []string{"gates"}, "production"), editor)
	request := map[string]string{openAt: now()}
	for name, tc := range map[string]struct {
		p             *person
		name, command string
		annotations   map[string]string
		cause         string
	}{
		"create":                                {edith, "name: production", "create", request, "user edith may not open gate " + w.Namespace + "/production"},
		"create with a generated name":          {edith, "generateName: production-", "create", request, "user edith may not open gate " + w.Namespace + "/production-"},
		"the verb for another than the created": {nora, "generateName: production", "create", request, "user nora may not open gate " + w.Namespace + "/production"},
		"apply":                                 {edith, "name: production", "apply", request, "may not open"},
		"server-side apply":                     {edith, "name: production", "apply --server-side", request, "may not open"},
		"a forged requestedBy":                  {edith, "name: production", "create", map[string]string{openAt: now(), openBy: "alice"}, "user edith may not open"},
		"a reason for the next who opens":       {edith, "name: production", "create", map[string]string{openWhy: "approved"}, "may not open"},
		"a close request":                       {edith, "name: production", "create", map[string]string{closeAt: now()}, "may not close"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.on(t)
			out, err := tc.p.kubectl(w.Context(), w.Namespace, append(strings.Fields(tc.command), "-f", w.manifest(tc.name, tc.annotations))...)
			if err == nil || !strings.Contains(err.Error(), tc.cause) {
				t.Errorf("got %s, %v", out, err)
			}
			gates := &v1alpha1.GateList{}
			w.Must(cluster.Client.List(w.Context(), gates, client.InNamespace(w.Namespace)))
			if len(gates.Items) > 0 {
				t.Errorf("created: %+v", gates.Items)
			}
		})
	}
}

func TestChangingRemovingAndAddingAgainOpensNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	alice, edith := w.as("alice", opener), w.as("edith", editor, viewer)
	at := now()
	w.allowed(alice, "annotate", "gate", "production", openAt+"="+at)
	w.decided(g, metav1.ConditionTrue)
	w.allowed(alice, "annotate", "gate", "production", closeAt+"="+at) // on a tie, close
	w.decided(g, metav1.ConditionFalse)
	overwrite := "annotate --overwrite gate GATE "
	for _, a := range []attack{
		kubectl("another time", overwrite+openAt+"=NOW"), kubectl("the same time in other words", overwrite+openAt+"="+strings.Replace(at, "Z", "+00:00", 1)),
		kubectl("a reason", overwrite+openWhy+"=approved"), kubectl("another time to close", overwrite+closeAt+"=2020-01-01T00:00:00Z"),
	} {
		cause := "may not open"
		if strings.Contains(a.name, "close") {
			cause = "may not close"
		}
		w.refused(edith, g, a, cause)
	}
	w.allowed(edith, "annotate", "gate", "production", openAt+"-")
	if by, ok := w.get(g).Annotations[openBy]; ok {
		t.Errorf("requestedBy %s outlives its request", by)
	}
	w.refused(edith, g, kubectl("add again", "annotate gate GATE "+openAt+"="+at), "may not open")
	w.refused(edith, g, kubectl("add another", "annotate gate GATE "+openAt+"=NOW"), "may not open")
	w.refused(edith, g, attack{"remove and add in one patch", func(w *world, p *person, _ *v1alpha1.Gate) (string, error) {
		return p.kubectl(w.Context(), w.Namespace, "patch", "gate", "production", "--type=json", "-p",
			`[{"op":"remove","path":"/metadata/annotations/close.gate.fluxcd.io~1requestedAt"},`+
				`{"op":"add","path":"/metadata/annotations/open.gate.fluxcd.io~1requestedAt","value":"`+now()+`"}]`)
	}}, "may not open")
	w.decided(g, metav1.ConditionFalse)
}

// The API server accepts another spelling, and the controller
// does not read it.
func TestOtherSpellingsOpenNothing(t *testing.T) {
	w := newWorld(t)
	g := w.gate("production")
	edith := w.as("edith", editor, viewer)
	for _, key := range []string{
		"open.gate.fluxcd.io/requestedat", "open.gate.fluxcd.io/RequestedAt", "open.gate.fluxcd.io/REQUESTEDAT", "OPEN.gate.fluxcd.io/requestedAt",
		"open.gate.fluxcd.io/requestedAt ", " open.gate.fluxcd.io/requestedAt", "open.gate.fluxcd.io/requestedAt\t", "open.gate.fluxcd.io/requestedAt\u200b",
		"open.gate.fluxcd.io./requestedAt", "open.gate.fluxcd.io//requestedAt", "open.gate.fluxcd.io/requestedAt/", "open.gate.fluxcd.io/requested\u0410t",
		"open.gate.fluxcd.io~1requestedAt", "open.gate.fluxcd.io%2FrequestedAt", "open.gate.toolkit.fluxcd.io/requestedAt", "gating.toolkit.fluxcd.io/requestedAt",
		"open.gates.fluxcd.io/requestedAt", "requestedAt", "open", "open.gate.fluxcd.io/requested-at", "reconcile.fluxcd.io/open",
	} {
		for _, field := range []string{"annotations", "labels"} {
			value := now()
			if field == "labels" { // a label has no colons
				value = time.Now().UTC().Format("2006-01-02T150405Z")
			}
			patch, err := json.Marshal(map[string]any{"metadata": map[string]any{field: map[string]string{key: value}}})
			w.Must(err)
			before := w.get(g)
			if err := edith.Client.Patch(w.Context(), before.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
				if w.get(g).ResourceVersion != before.ResourceVersion {
					t.Errorf("%s %q is refused, but changed the gate", field, key)
				}
			}
		}
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+openAt+`":"x"}}}`))
	w.Must(edith.Client.Patch(w.Context(), w.get(g), label))
	g = w.get(g)
	if len(g.Annotations) < 10 || len(g.Labels) < 10 {
		t.Errorf("few spellings were accepted: %q, %q", slices.Collect(maps.Keys(g.Annotations)), slices.Collect(maps.Keys(g.Labels)))
	}
	if _, ok := g.Annotations[openAt]; ok {
		t.Error("the annotation is there")
	}
	w.decided(g, metav1.ConditionFalse)
	if g.LatestRequest() != nil || len(g.Status.Memory.HandledRequests) > 0 {
		t.Errorf("a request was handled: %+v", g.Status.Requests)
	}
}

// allowed runs kubectl, which must succeed.
func (w *world) allowed(p *person, args ...string) string {
	w.Helper()
	out, err := p.kubectl(w.Context(), w.Namespace, args...)
	w.Must(err)
	return out
}
