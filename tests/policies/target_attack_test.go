package policies

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// own is a Gate with one Kustomization of its namespace.
const own = `{"targets":[{"kind":"Kustomization","name":"apps"}]}`

func TestNobodyCreatesAGateThatHoldsWhatTheyMayNotPatch(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	bob := w.as("bob", editor, viewer)
	kinds, resources := kindsAndResources()
	for i, kind := range kinds {
		w.noHold(bob, w.mayNotHold("bob", pluralOf(kind), w.Namespace, "freeze", resources[i]), "create", "-f", w.hold("freeze", `{"targets":[{"kind":"`+kind+`","name":"x"}]}`))
	}
	here, there := w.mayNotHold("bob", "Kustomizations", w.Namespace, "freeze", apps), w.mayNotHold("bob", "Kustomizations", shop.Namespace, "freeze", apps)
	for targets, cause := range map[string]string{
		`{"kind":"Kustomization","name":"*"}`:                                                               here,
		`{"kind":"Kustomization","name":"*","matchLabels":{"a":"b"}}`:                                       here,
		`{"kind":"Kustomization","name":"apps","namespace":"` + w.Namespace + `"}`:                          here,
		`{"kind":"Kustomization","name":"apps","apiVersion":"kustomize.toolkit.fluxcd.io/v1"}`:              here,
		`{"kind":"Kustomization","name":"apps","apiVersion":"kustomize.toolkit.fluxcd.io/none"}`:            here,
		`{"kind":"Kustomization","name":"*","namespace":"` + shop.Namespace + `"}`:                          there,
		`{"kind":"Deployment","name":"x"},{"kind":"Kustomization","name":"apps"}`:                           here,
		`{"kind":"Kustomization","name":"x","apiVersion":"v1"},{"kind":"Kustomization","name":"apps"}`:      here,
		`{"kind":"Kustomization","name":"*","namespace":"*"}`:                                               w.mayNotHoldAnywhere("bob", "freeze"),
		`{"kind":"Kustomization","name":"*","namespace":"none-yet"}`:                                        w.mayNotHold("bob", "Kustomizations", "none-yet", "freeze", apps),
		`{"kind":"HelmRelease","name":"a"},{"kind":"Kustomization","name":"apps"}`:                          w.mayNotHold("bob", "HelmReleases", w.Namespace, "freeze", releases),
		strings.Repeat(`{"kind":"Deployment","name":"x"},`, 255) + `{"kind":"Kustomization","name":"apps"}`: here,
		strings.Repeat(`{"kind":"Kustomization","name":"x"},`, 255) + `{"kind":"Kustomization","name":"x"}`: here,
	} {
		w.noHold(bob, cause, "create", "-f", w.hold("freeze", `{"targets":[`+targets+`]}`))
	}
	for _, command := range []string{"create", "create --validate=false", "create --dry-run=server", "apply", "apply --server-side", "apply --server-side --force-conflicts --field-manager=gating-controller"} {
		w.noHold(bob, here, append(strings.Fields(command), "-f", w.hold("freeze", own))...)
	}
	for _, more := range []string{`"suspend":true`, `"default":"opened"`, `"mode":"Lenient"`} {
		w.noHold(bob, here, "create", "-f", w.hold("freeze", strings.Replace(own, "{", "{"+more+",", 1)))
	}
	w.noHold(bob, "by gate "+w.Namespace+"/freeze-", "create", "-f", w.hold("generateName: freeze-", own))
	w.noHold(w.as("victor", viewer), `cannot create resource "gates"`, "create", "--validate=false", "-f", w.hold("freeze", own))
}

// The controller cannot hold what it refuses, and says so in the status.
func TestWhatTheControllerCannotHoldNeedsNoVerb(t *testing.T) {
	w := newWorld(t)
	bob := w.as("bob", editor, viewer)
	w.allowed(bob, "create", "-f", w.hold("freeze", `{"targets":[
		{"kind":"Deployment","name":"x"},{"kind":"Secret","apiVersion":"v1","name":"x"},
		{"kind":"Kustomization","apiVersion":"kustomize.config.k8s.io/v1beta1","name":"x"},{"kind":"Kustomization","apiVersion":"v1","name":"x"},
		{"kind":"Kustomizations","name":"x"}]}`))
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: w.Namespace}}
	w.Eventually("each of them is a failure", func() error {
		if w.Read(g); len(g.Status.TargetFailures()) != len(g.Spec.Targets) {
			return fmt.Errorf("failures are %+v", g.Status.TargetFailures())
		}
		return nil
	})
	for _, f := range g.Status.TargetFailures() {
		if f.Reason != v1alpha1.UnsupportedKindReason {
			t.Errorf("got %+v", f)
		}
	}
}

func TestNothingBesidesTheVerbOnTheKindInTheNamespaceLetsHold(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	create := []string{"create", "--dry-run=server", "-f", w.hold("freeze", own)}
	for user, may := range map[string]func(string){
		"ute":    func(u string) { w.mayOn(u, "update", apps) },
		"gerd":   func(u string) { w.mayOn(u, "get", apps) },
		"hilda":  func(u string) { w.mayOn(u, "patch", releases) },
		"stefan": func(u string) { w.mayOn(u, "patch", "kustomizations/status.kustomize.toolkit.fluxcd.io") },
		"arthur": func(u string) { w.mayOn(u, "patch", "kustomizations.kustomize.config.k8s.io") },
		"shona":  func(u string) { shop.mayOn(u, "patch", apps) },
		"nora":   func(u string) { w.bind(u, false, "patch", []string{"apps", "production"}, apps) },
		"olga":   func(u string) { w.as(u, opener) },
		"otto":   func(u string) { w.as(u, w.role([]string{"*"}, []string{"*"})) },
	} {
		p := w.as(user, editor, viewer)
		may(user)
		w.noHold(p, w.mayNotHold(user, "Kustomizations", w.Namespace, "freeze", apps), create...)
	}
	for user, may := range map[string]func(string){
		"paul":   func(u string) { w.mayOn(u, "patch", apps) },
		"stella": func(u string) { w.mayOn(u, "*", apps) },
		"rolf":   func(u string) { w.mayOn(u, "patch", "*.*") },
		"clara":  func(string) { w.clusterAdmin() },
	} {
		p := w.as(user, editor, viewer)
		may(user)
		w.allowed(p, create...)
	}
}

func TestNoEditAddsATargetWithoutTheVerb(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	bob, carla := w.as("bob", editor, viewer), w.as("carla", editor, viewer)
	w.mayOn("carla", "patch", apps)
	w.allowed(carla, "create", "-f", w.hold("freeze", `{"targets":[{"kind":"Kustomization","name":"apps"},{"kind":"Kustomization","name":"*","matchLabels":{"a":"b"}}]}`))
	here, there := w.mayNotHold("bob", "Kustomizations", w.Namespace, "freeze", apps), w.mayNotHold("bob", "Kustomizations", shop.Namespace, "freeze", apps)
	patch := func(kind, content string) []string {
		return []string{"patch", "gate", "freeze", "--type=" + kind, "-p", content}
	}
	first, second := `{"kind":"Kustomization","name":"apps"}`, `{"kind":"Kustomization","name":"*","matchLabels":{"a":"b"}}`
	merge := func(targets ...string) []string {
		return patch("merge", `{"spec":{"targets":[`+strings.Join(targets, ",")+`]}}`)
	}
	for name, tc := range map[string]struct {
		cause string
		args  []string
	}{
		"one more":                       {here, merge(first, second, `{"kind":"Kustomization","name":"more"}`)},
		"one in its place":               {here, merge(`{"kind":"Kustomization","name":"more"}`, second)},
		"other labels":                   {here, merge(first, `{"kind":"Kustomization","name":"*","matchLabels":{"a":"c"}}`)},
		"no labels":                      {here, merge(first, `{"kind":"Kustomization","name":"*"}`)},
		"its namespace, spelled out":     {here, merge(`{"kind":"Kustomization","name":"apps","namespace":"`+w.Namespace+`"}`, second)},
		"another namespace":              {there, merge(`{"kind":"Kustomization","name":"apps","namespace":"`+shop.Namespace+`"}`, second)},
		"its apiVersion, spelled out":    {here, merge(`{"kind":"Kustomization","name":"apps","apiVersion":"kustomize.toolkit.fluxcd.io/v1"}`, second)},
		"another kind":                   {w.mayNotHold("bob", "HelmReleases", w.Namespace, "freeze", releases), merge(`{"kind":"HelmRelease","name":"apps"}`, second)},
		"JSON patch that adds":           {here, patch("json", `[{"op":"add","path":"/spec/targets/-","value":{"kind":"Kustomization","name":"more"}}]`)},
		"JSON patch that changes a name": {here, patch("json", `[{"op":"replace","path":"/spec/targets/0/name","value":"*"}]`)},
		"along with a label":             {here, patch("merge", `{"metadata":{"labels":{"a":"b"}},"spec":{"targets":[{"kind":"Kustomization","name":"more"}]}}`)},
		"with the end of it":             {here, patch("merge", `{"metadata":{"finalizers":null},"spec":{"targets":[{"kind":"Kustomization","name":"more"}]}}`)},
		"replace":                        {here, []string{"replace", "-f", w.hold("freeze", `{"targets":[{"kind":"Kustomization","name":"more"}]}`)}},
		"apply":                          {here, []string{"apply", "-f", w.hold("freeze", `{"targets":[{"kind":"Kustomization","name":"more"}]}`)}},
		"server-side apply":              {here, []string{"apply", "--server-side", "--force-conflicts", "-f", w.hold("freeze", `{"targets":[{"kind":"Kustomization","name":"more"}]}`)}},
		"as the controller":              {here, []string{"apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "-f", w.hold("freeze", `{"targets":[{"kind":"Kustomization","name":"more"}]}`)}},
		"a dry run":                      {here, append(merge(`{"kind":"Kustomization","name":"more"}`), "--dry-run=server")},
	} {
		t.Run(name, func(t *testing.T) { w.on(t).noHold(bob, tc.cause, tc.args...) })
	}
	w.noHold(w.clusterAdmin(), "may not write the status", "patch", "gate", "freeze", "--subresource=status", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"Kustomization","name":"more"}]},"status":{"observedGeneration":7}}`)
	g := w.ReadGate("freeze")
	err := w.Rewrite(g, func() error {
		g.Spec.Targets[0].Name = "more"
		return bob.Client.Update(w.Context(), g)
	})
	if err == nil || !strings.Contains(err.Error()+"\n", here) {
		t.Errorf("update by a client in Go: %v", err)
	}
	w.allowed(carla, merge(first, second, `{"kind":"Kustomization","name":"more"}`)...)
	w.noHold(carla, w.mayNotHold("carla", "HelmReleases", w.Namespace, "freeze", releases), merge(first, second, `{"kind":"HelmRelease","name":"more"}`)...)
}

// A person with fewer permissions than the writer of the targets still edits the rest, and lets go.
func TestWhoMayNotPatchTheTargetsEditsTheRestAndTakesThemOut(t *testing.T) {
	w := newWorld(t)
	bob := w.as("bob", editor, viewer)
	targets := []string{`{"kind":"Kustomization","name":"apps"}`, `{"kind":"HelmRelease","name":"*","namespace":"shop"}`, `{"kind":"Kustomization","name":"*","matchLabels":{"a":"b","c":"d"}}`}
	of := func(more string, targets ...string) string {
		return `{` + more + `"targets":[` + strings.Join(targets, ",") + `]}`
	}
	w.allowed(w.clusterAdmin(), "create", "-f", w.hold("freeze", of("", targets...)))
	merge := func(spec string) {
		w.allowed(bob, "patch", "gate", "freeze", "--type=merge", "-p", `{"spec":`+spec+`}`)
	}
	merge(`{"interval":"2m"}`)
	merge(`{"openPeriods":[{"name":"nights","start":"22:00","end":"04:00"}]}`)
	merge(of(`"suspend":true,`, targets...))
	merge(of("", targets[2], targets[0], targets[1]))
	merge(of("", append(targets, targets...)...))
	w.allowed(bob, "label", "gate", "freeze", "a=b")
	w.allowed(bob, "annotate", "gate", "freeze", "a=b")
	w.allowed(bob, "apply", "--server-side", "--force-conflicts", "-f", w.hold("freeze", of(`"interval":"3m",`, targets...)))
	w.allowed(bob, "replace", "-f", w.hold("freeze", of(`"interval":"4m",`, targets...)))
	merge(of("", targets[1:]...))
	w.noHold(bob, w.mayNotHold("bob", "Kustomizations", w.Namespace, "freeze", apps), "patch", "gate", "freeze", "--type=merge", "-p", `{"spec":`+of("", targets...)+`}`)
	merge(`{"targets":[]}`)
	merge(`{"targets":null}`)
	w.noHold(bob, w.mayNotHold("bob", "HelmReleases", "shop", "freeze", releases), "patch", "gate", "freeze", "--type=merge", "-p", `{"spec":`+of("", targets[1])+`}`)
	w.allowed(w.clusterAdmin(), "create", "-f", w.hold("second", of("", targets...)))
	w.allowed(bob, "delete", "gate", "second")
	w.Must(bob.Client.DeleteAllOf(w.Context(), &v1alpha1.Gate{}, client.InNamespace(w.Namespace)))
}

func TestNobodyWatchesWhatTheyMayNotGet(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	bob, carla := w.as("bob", editor, viewer), w.as("carla", editor, viewer)
	w.mayOn("bob", "patch", apps)
	w.mayOn("carla", "get", apps)
	kinds, resources := kindsAndResources()
	for i, kind := range kinds {
		if kind == v1alpha1.GatedSourceKind {
			continue // who views Gates gets those
		}
		w.noHold(bob, w.mayNotWatch("bob", pluralOf(kind), w.Namespace, "after", resources[i]), "create", "-f", w.hold("after", `{"dependsOn":[{"kind":"`+kind+`","name":"x"}]}`))
	}
	watch := func(more string) string { return `{"dependsOn":[{"kind":"Kustomization","name":"infra"` + more + `}]}` }
	here := w.mayNotWatch("bob", "Kustomizations", w.Namespace, "after", apps)
	for _, more := range []string{`,"apiVersion":"kustomize.toolkit.fluxcd.io/v1"`, `,"namespace":"` + w.Namespace + `"`, `,"readyExpr":"dep.spec.suspend"`} {
		w.noHold(bob, here, "create", "-f", w.hold("after", watch(more)))
	}
	elsewhere := `,"namespace":"` + shop.Namespace + `"`
	w.noHold(carla, w.mayNotWatch("carla", "Kustomizations", shop.Namespace, "after", apps), "create", "-f", w.hold("after", watch(elsewhere)))
	w.noHold(carla, w.mayNotHold("carla", "Kustomizations", w.Namespace, "after", apps), "create", "-f", w.hold("after", own))
	w.allowed(carla, "create", "-f", w.hold("after", watch("")))
	w.allowed(bob, "patch", "gate", "after", "--type=merge", "-p", `{"spec":{"interval":"2m","targets":[{"kind":"Kustomization","name":"apps"}]}}`)
	for _, more := range []string{`,"readyExpr":"dep.spec.path.startsWith('s')"`, `,"apiVersion":"kustomize.toolkit.fluxcd.io/v1"`} {
		w.noHold(bob, here, "patch", "gate", "after", "--type=merge", "-p", `{"spec":`+watch(more)+`}`)
	}
	w.allowed(bob, "create", "-f", w.hold("none", `{"dependsOn":[{"kind":"Deployment","name":"x"},{"kind":"Kustomization","apiVersion":"v1","name":"x"}]}`))
	w.allowed(bob, "patch", "gate", "after", "--type=merge", "-p", `{"spec":{"dependsOn":null}}`)
}

// The policy judges nobody by name: what the controller writes of a Gate is never a target.
func TestTheControllerDoesItsWorkOnAGateWithTargets(t *testing.T) {
	w := newWorld(t)
	w.Create(w.Kustomization("apps"))
	w.allowed(w.clusterAdmin(), "create", "-f", w.hold("freeze", own))
	g := w.ReadGate("freeze")
	w.decided(g, metav1.ConditionFalse)
	if len(g.Finalizers) == 0 {
		t.Error("no finalizer")
	}
	account := w.as("system:serviceaccount:gating-system:gating-controller")
	w.noHold(account, "may not change spec of gate", "patch", "gate", "freeze", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"HelmRelease","name":"x"}]}}`)
	bob := w.as("bob", editor, viewer)
	w.allowed(bob, "delete", "gate", "freeze", "--wait=false")
	w.Eventually("the gate is gone", func() error {
		if err := cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err == nil {
			return fmt.Errorf("it is there with %v", g.Finalizers)
		}
		return nil
	})
}
