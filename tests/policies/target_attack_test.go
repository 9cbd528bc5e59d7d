package policies

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// own is a Gate with one Kustomization of its namespace.
const own = `{"targets":[{"kind":"Kustomization","name":"apps"}]}`

func TestGateCreationNeedsPatchOnTargets(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	bob := w.as("bob", editor, viewer)
	kinds, resources := kindsAndResources()
	for i, kind := range kinds {
		w.refused(bob, w.mayNotHold("bob", pluralOf(kind), w.Namespace, "freeze", resources[i]), "create", "-f", holdFile("freeze", `{"targets":[{"kind":"`+kind+`","name":"x"}]}`))
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
		w.refused(bob, cause, "create", "-f", holdFile("freeze", `{"targets":[`+targets+`]}`))
	}
	for _, command := range []string{"create", "create --validate=false", "create --dry-run=server", "apply", "apply --server-side", "apply --server-side --force-conflicts --field-manager=gating-controller"} {
		w.refused(bob, here, append(strings.Fields(command), "-f", holdFile("freeze", own))...)
	}
	for _, more := range []string{`"suspend":true`, `"default":"opened"`, `"mode":"Lenient"`} {
		w.refused(bob, here, "create", "-f", holdFile("freeze", strings.Replace(own, "{", "{"+more+",", 1)))
	}
	// The controller cannot hold these kinds.
	w.allowed(bob, "create", "-f", holdFile("none", `{"targets":[{"kind":"Deployment","name":"x"},{"kind":"Secret","apiVersion":"v1","name":"x"},{"kind":"Kustomizations","name":"x"},`+
		`{"kind":"Kustomization","apiVersion":"kustomize.config.k8s.io/v1beta1","name":"x"},{"kind":"Kustomization","apiVersion":"v1","name":"x"}]}`))
	w.refused(bob, "by gate "+w.Namespace+"/freeze-", "create", "-f", holdFile("generateName: freeze-", own))
	w.refused(w.as("victor", viewer), `cannot create resource "gates"`, "create", "--validate=false", "-f", holdFile("freeze", own))
}

func TestOnlyVerbOnKindInNamespaceAllowsHold(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	create := []string{"create", "--dry-run=server", "-f", holdFile("freeze", own)}
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
		w.refused(p, w.mayNotHold(user, "Kustomizations", w.Namespace, "freeze", apps), create...)
	}
	w.mayOn("paul", "patch", apps)
	w.mayOn("stella", "*", apps)
	w.mayOn("rolf", "patch", "*.*")
	for _, p := range []*person{w.as("paul", editor, viewer), w.as("stella", editor, viewer), w.as("rolf", editor, viewer), w.clusterAdmin()} {
		w.allowed(p, create...)
	}
}

func TestAddedTargetNeedsVerb(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	bob, carla := w.as("bob", editor, viewer), w.as("carla", editor, viewer)
	w.mayOn("carla", "patch", apps)
	w.allowed(carla, "create", "-f", holdFile("freeze", `{"targets":[{"kind":"Kustomization","name":"apps"},{"kind":"Kustomization","name":"*","matchLabels":{"a":"b"}}]}`))
	here, there := w.mayNotHold("bob", "Kustomizations", w.Namespace, "freeze", apps), w.mayNotHold("bob", "Kustomizations", shop.Namespace, "freeze", apps)
	patch := func(kind, content string) []string {
		return []string{"patch", "gate", "freeze", "--type=" + kind, "-p", content}
	}
	first, second := `{"kind":"Kustomization","name":"apps"}`, `{"kind":"Kustomization","name":"*","matchLabels":{"a":"b"}}`
	merge := func(targets ...string) []string {
		return patch("merge", `{"spec":{"targets":[`+strings.Join(targets, ",")+`]}}`)
	}
	more := holdFile("freeze", `{"targets":[{"kind":"Kustomization","name":"more"}]}`)
	for _, tc := range []struct {
		cause string
		args  []string
	}{
		{here, merge(first, second, `{"kind":"Kustomization","name":"more"}`)},
		{here, merge(`{"kind":"Kustomization","name":"more"}`, second)},
		{here, merge(first, `{"kind":"Kustomization","name":"*","matchLabels":{"a":"c"}}`)},
		{here, merge(first, `{"kind":"Kustomization","name":"*"}`)},
		// The same target with its namespace or apiVersion counts as another entry.
		{here, merge(`{"kind":"Kustomization","name":"apps","namespace":"`+w.Namespace+`"}`, second)},
		{here, merge(`{"kind":"Kustomization","name":"apps","apiVersion":"kustomize.toolkit.fluxcd.io/v1"}`, second)},
		{there, merge(`{"kind":"Kustomization","name":"apps","namespace":"`+shop.Namespace+`"}`, second)},
		{w.mayNotHold("bob", "HelmReleases", w.Namespace, "freeze", releases), merge(`{"kind":"HelmRelease","name":"apps"}`, second)},
		{here, patch("json", `[{"op":"add","path":"/spec/targets/-","value":{"kind":"Kustomization","name":"more"}}]`)},
		{here, patch("json", `[{"op":"replace","path":"/spec/targets/0/name","value":"*"}]`)},
		{here, patch("merge", `{"metadata":{"labels":{"a":"b"}},"spec":{"targets":[{"kind":"Kustomization","name":"more"}]}}`)},
		{here, patch("merge", `{"metadata":{"finalizers":null},"spec":{"targets":[{"kind":"Kustomization","name":"more"}]}}`)},
		{here, append(merge(`{"kind":"Kustomization","name":"more"}`), "--dry-run=server")},
		{here, []string{"replace -f " + more}}, {here, []string{"apply -f " + more}}, {here, []string{"apply --server-side --force-conflicts -f " + more}},
		{here, []string{"apply --server-side --force-conflicts --field-manager=gating-controller -f " + more}},
	} {
		w.refused(bob, tc.cause, tc.args...)
	}
	w.refused(w.clusterAdmin(), "may not write the status", "patch", "gate", "freeze", "--subresource=status", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"Kustomization","name":"more"}]},"status":{"observedGeneration":7}}`)
	w.allowed(carla, merge(first, second, `{"kind":"Kustomization","name":"more"}`)...)
	w.refused(carla, w.mayNotHold("carla", "HelmReleases", w.Namespace, "freeze", releases), merge(first, second, `{"kind":"HelmRelease","name":"more"}`)...)
}

// A person with fewer permissions than the author of the targets can still edit other fields and remove targets.
func TestEditorWithoutPatchMayRemoveTargets(t *testing.T) {
	w := newWorld(t)
	bob := w.as("bob", editor, viewer)
	targets := []string{`{"kind":"Kustomization","name":"apps"}`, `{"kind":"HelmRelease","name":"*","namespace":"shop"}`, `{"kind":"Kustomization","name":"*","matchLabels":{"a":"b","c":"d"}}`}
	of := func(more string, targets ...string) string {
		return `{` + more + `"targets":[` + strings.Join(targets, ",") + `]}`
	}
	w.allowed(w.clusterAdmin(), "create", "-f", holdFile("freeze", of("", targets...)))
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
	w.allowed(bob, "apply", "--server-side", "--force-conflicts", "-f", holdFile("freeze", of(`"interval":"3m",`, targets...)))
	w.allowed(bob, "replace", "-f", holdFile("freeze", of(`"interval":"4m",`, targets...)))
	merge(of("", targets[1:]...))
	w.refused(bob, w.mayNotHold("bob", "Kustomizations", w.Namespace, "freeze", apps), "patch", "gate", "freeze", "--type=merge", "-p", `{"spec":`+of("", targets...)+`}`)
	merge(`{"targets":[]}`)
	merge(`{"targets":null}`)
	w.refused(bob, w.mayNotHold("bob", "HelmReleases", "shop", "freeze", releases), "patch", "gate", "freeze", "--type=merge", "-p", `{"spec":`+of("", targets[1])+`}`)
	w.allowed(w.clusterAdmin(), "create", "-f", holdFile("second", of("", targets...)))
	w.allowed(bob, "delete", "gate", "second")
	w.Must(bob.Client.DeleteAllOf(w.Context(), &v1alpha1.Gate{}, client.InNamespace(w.Namespace)))
}

func TestWatchedObjectsNeedGet(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	bob, carla := w.as("bob", editor, viewer), w.as("carla", editor, viewer)
	w.mayOn("bob", "patch", apps)
	w.mayOn("carla", "get", apps)
	kinds, resources := kindsAndResources()
	for i, kind := range kinds {
		if kind == v1alpha1.GatedSourceKind {
			continue // the viewer role includes those
		}
		w.refused(bob, w.mayNotWatch("bob", pluralOf(kind), w.Namespace, "after", resources[i]), "create", "-f", holdFile("after", `{"dependsOn":[{"kind":"`+kind+`","name":"x"}]}`))
	}
	watch := func(more string) string { return `{"dependsOn":[{"kind":"Kustomization","name":"infra"` + more + `}]}` }
	here := w.mayNotWatch("bob", "Kustomizations", w.Namespace, "after", apps)
	for _, more := range []string{`,"apiVersion":"kustomize.toolkit.fluxcd.io/v1"`, `,"namespace":"` + w.Namespace + `"`, `,"readyExpr":"dep.spec.suspend"`} {
		w.refused(bob, here, "create", "-f", holdFile("after", watch(more)))
	}
	elsewhere := `,"namespace":"` + shop.Namespace + `"`
	w.refused(carla, w.mayNotWatch("carla", "Kustomizations", shop.Namespace, "after", apps), "create", "-f", holdFile("after", watch(elsewhere)))
	w.refused(carla, w.mayNotHold("carla", "Kustomizations", w.Namespace, "after", apps), "create", "-f", holdFile("after", own))
	w.allowed(carla, "create", "-f", holdFile("after", watch("")))
	w.allowed(bob, "patch", "gate", "after", "--type=merge", "-p", `{"spec":{"interval":"2m","targets":[{"kind":"Kustomization","name":"apps"}]}}`)
	for _, more := range []string{`,"readyExpr":"dep.spec.path.startsWith('s')"`, `,"apiVersion":"kustomize.toolkit.fluxcd.io/v1"`} {
		w.refused(bob, here, "patch", "gate", "after", "--type=merge", "-p", `{"spec":`+watch(more)+`}`)
	}
	w.allowed(bob, "create", "-f", holdFile("none", `{"dependsOn":[{"kind":"Deployment","name":"x"},{"kind":"Kustomization","apiVersion":"v1","name":"x"}]}`))
	w.allowed(bob, "patch", "gate", "after", "--type=merge", "-p", `{"spec":{"dependsOn":null}}`)
}

// A tenant may patch in the tenant's own namespace, and must not hold objects of others.
func TestTenantIsLimitedToNamespace(t *testing.T) {
	w := newWorld(t)
	tenant, platform := w.as("tina", editor, viewer), w.as("pia", editor, viewer)
	w.mayOn("tina", "patch", apps, releases)
	w.bind("pia", true, "patch", nil, apps)
	const all = `{"kind":"Kustomization","name":"*","namespace":"*"}`
	refused := w.mayNotHoldAnywhere("tina", "fleet")
	for _, targets := range []string{
		all, `{"kind":"Kustomization","name":"apps","namespace":"*"}`, `{"kind":"Kustomization","name":"*","namespace":"*","matchLabels":{"team":"a"}}`,
		`{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"` + w.Namespace + `"}}}`,
		`{"kind":"Kustomization","name":"apps","namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["` + w.Namespace + `"]}]}}`,
		`{"kind":"Kustomization","apiVersion":"kustomize.toolkit.fluxcd.io/v1","name":"*","namespace":"*"}`,
		`{"kind":"Kustomization","name":"*","namespace":"*","matchExpressions":[{"key":"a","operator":"Exists"}]}`,
		`{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"no":"such"}}}`,
		strings.Repeat(`{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"a":"b"}}},`, 2) + `{"kind":"Kustomization","name":"apps"}`,
		all + strings.Repeat(`,{"kind":"Kustomization","name":"x"}`, 254), // among more targets than the policy can check
		`{"kind":"HelmRelease","name":"*"},` + all, all + `,{"kind":"HelmRelease","name":"*"}`, // next to targets that the tenant may hold
	} {
		command := "create --dry-run=server -f " + holdFile("fleet", `{"targets":[`+targets+`]}`)
		w.refused(tenant, refused, command)
		if !strings.Contains(targets, "HelmRelease") {
			w.allowed(platform, command)
		}
	}

	w.allowed(tenant, "create", "-f", holdFile("fleet", own))
	for _, patch := range []string{
		`[{"op":"add","path":"/spec/targets/-","value":` + all + `}]`, `[{"op":"add","path":"/spec/targets/0/namespace","value":"*"}]`,
		`[{"op":"add","path":"/spec/targets/0/namespaceSelector","value":{"matchLabels":{"a":"b"}}}]`,
		`[{"op":"replace","path":"/spec/targets/0","value":{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"a":"b"}},"matchExpressions":[{"key":"a","operator":"Exists"}]}}]`,
	} {
		w.refused(tenant, refused, "patch gate fleet --type=json -p "+patch)
	}
	w.allowed(platform, "patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"Kustomization","name":"*","namespaceSelector":{"matchLabels":{"team":"a"}}}]}}`)
	w.refused(tenant, refused, "patch", "gate", "fleet", "--type=json", "-p", `[{"op":"replace","path":"/spec/targets/0/namespaceSelector","value":{"matchLabels":{"b":"c"}}}]`)
	w.refused(tenant, refused, "patch", "gate", "fleet", "--type=json", "-p", `[{"op":"add","path":"/spec/targets/0/namespaceSelector/matchLabels/team","value":"b"}]`)
	w.allowed(tenant, "patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"interval":"5m"}}`)
	w.allowed(tenant, "patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"targets":null}}`)
}

// A person who may patch in all namespaces needs no verb in any of them.
func TestClusterWideHoldNeedsPatchPerKind(t *testing.T) {
	w := newWorld(t)
	pia := w.as("petra", editor, viewer)
	w.bind("petra", true, "patch", nil, apps)
	w.allowed(pia, "create", "-f", holdFile("fleet", `{"targets":[{"kind":"Kustomization","name":"*","namespace":"*"},{"kind":"Kustomization","name":"x","namespace":"other"}]}`))
	w.refused(pia, "user petra may not hold HelmReleases in all namespaces by gate "+w.Namespace+"/fleet: that needs the verb patch on "+releases+" there\n",
		"patch", "gate", "fleet", "--type=merge", "-p", `{"spec":{"targets":[{"kind":"HelmRelease","name":"*","namespaceSelector":{"matchLabels":{"team":"a"}}}]}}`)
}

// From one namespace, even a user who may patch objects in another, and so passes the policy, cannot hold them: the controller would do so
// with its own permissions.
func TestEditorHoldsNothingInOtherNamespaces(t *testing.T) {
	w, platform := newWorld(t), newWorld(t)
	held := platform.Kustomization("apps")
	platform.Create(held)
	edith := w.as("edith", editor, viewer)
	platform.mayOn("edith", "patch get", apps)
	all := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, Namespace: platform.Namespace}
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "freeze", Namespace: w.Namespace}, Spec: v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all},
		DependsOn: []v1alpha1.DependencyReference{{Kind: "Kustomization", Name: "apps", Namespace: platform.Namespace}},
	}}
	w.Must(edith.Client.Create(w.Context(), g))
	// The failures are written after the targets.
	w.until("both references are refused", func() (bool, any) {
		w.Read(g)
		refused := 0
		for _, f := range g.Status.TargetFailures() {
			if f.Reason == v1alpha1.AccessDeniedReason && (f.Name == v1alpha1.AnyName || f.Name == "apps") {
				refused++
			}
		}
		return refused == 2, g.Status.TargetFailures()
	})
	want := fmt.Sprintf("targets in namespace %q cannot be held from namespace %q: the controller runs with --no-cross-namespace-refs",
		platform.Namespace, w.Namespace)
	if ready := meta.FindStatusCondition(g.Status.Conditions, fluxmeta.ReadyCondition); ready == nil ||
		ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, want) {
		t.Errorf("Ready is %+v, want False with %q", ready, want)
	}
	before := held.GetResourceVersion()
	w.Read(held)
	w.is("the version of the other's object", held.GetResourceVersion(), before)
}
