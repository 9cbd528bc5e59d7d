package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// expensive are as many targets as there may be, and all kinds watched, with what of it may be long: of each kind in this
// namespace, and so as many checks as there may be.
func (w *world) expensive(letter string) (targets []v1alpha1.TargetReference, watch []v1alpha1.DependencyReference) {
	w.Helper()
	kinds, resources := kindsAndResources()
	for i, resource := range resources {
		_, group, _ := strings.Cut(resource, ".")
		watch = append(watch, v1alpha1.DependencyReference{
			APIVersion: group + "/v" + strings.Repeat("1", 60), Kind: kinds[i], Namespace: w.Namespace, Name: strings.Repeat(letter, 100),
			ReadyExpr: strings.Repeat("true && ", 120) + "true",
		})
	}
	for i := range 256 {
		ref := &watch[len(kinds)-1-i%len(kinds)]
		targets = append(targets, v1alpha1.TargetReference{APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: fmt.Sprintf("%s-%d", ref.Name, i)})
	}
	return targets, watch
}

func TestThePolicyAffordsAllThatAGateMayHave(t *testing.T) {
	w, shop := newWorld(t), newWorld(t)
	targets, watch := w.expensive("a")
	kinds, resources := kindsAndResources()
	left := most - 2*len(resources)
	if left < 0 {
		t.Fatalf("%d kinds, held and depended on, are above the limit of %d", len(resources), most)
	}
	bob, dora := w.as("bob", editor, viewer), w.as("dora", editor, viewer)
	for user, gets := range map[string][]string{"bob": resources, "dora": resources[:len(resources)-1]} {
		w.mayOn(user, "patch", resources...)
		w.mayOn(user, "get", gets...)
		shop.mayOn(user, "patch", resources...)
	}
	w.allowed(bob, "create", "-f", w.hold("freeze", spec(targets, watch...)))
	w.noHold(dora, w.mayNotWatch("dora", "OCIRepositories", w.Namespace, "second", resources[len(resources)-1]), "create", "-f", w.hold("second", spec(targets, watch...)))

	var above []v1alpha1.TargetReference
	for _, kind := range kinds[:left+1] {
		above = append(above, v1alpha1.TargetReference{Kind: kind, Name: "apps", Namespace: shop.Namespace})
	}
	beyond := slices.Concat(targets[:256-len(above)], above)
	for _, more := range [][]v1alpha1.TargetReference{slices.Concat(above, targets[len(above):]), beyond} {
		w.noHold(bob, w.tooMany("bob", "Buckets", "second", resources[0]), "create", "-f", w.hold("second", spec(more, watch...)))
	}
	// All of them are new, and each is compared with all that was.
	others, otherWatch := w.expensive("b")
	w.allowed(bob, "replace", "-f", w.hold("freeze", spec(others, otherWatch...)))
	w.noHold(bob, w.tooMany("bob", "Buckets", "freeze", resources[0]), "replace", "-f", w.hold("freeze", spec(beyond, watch...)))
	// One step after the other, they may.
	w.allowed(bob, "replace", "-f", w.hold("freeze", spec(targets, watch...)))
	w.allowed(bob, "replace", "-f", w.hold("freeze", spec(beyond, watch...)))
	// In all namespaces, they may at once.
	erna := w.as("erna", editor, viewer)
	w.bind("erna", true, "patch", nil, resources...)
	w.bind("erna", true, "get", nil, resources...)
	w.allowed(erna, "create", "-f", w.hold("second", spec(beyond, watch...)))
	if got := w.ReadGate("second"); len(got.Spec.Targets) != 256 || len(got.Spec.DependsOn) != len(watch) {
		t.Errorf("%d targets, %d watched", len(got.Spec.Targets), len(got.Spec.DependsOn))
	}
}

func TestAFleetOfNamespacesNeedsTheVerbInAllOfThem(t *testing.T) {
	w := newWorld(t)
	fleet := func(n int, kind string) (targets []v1alpha1.TargetReference) {
		for i := range n {
			targets = append(targets, v1alpha1.TargetReference{Kind: kind, Name: "*", Namespace: fmt.Sprintf("tenant-%d", i)})
		}
		return targets
	}
	fred, bob := w.as("fred", editor, viewer), w.as("bob", editor, viewer)
	w.mayOn("bob", "patch", apps)
	w.bind("fred", true, "patch", nil, apps)
	w.noHold(bob, w.mayNotHold("bob", "Kustomizations", "tenant-0", "fleet", apps), "create", "-f", w.hold("fleet", spec(fleet(most, "Kustomization"))))
	for _, n := range []int{most + 1, 256} {
		w.noHold(bob, w.tooMany("bob", "Kustomizations", "fleet", apps), "create", "-f", w.hold("fleet", spec(fleet(n, "Kustomization"))))
		w.allowed(fred, "create", "-f", w.hold(fmt.Sprint("fleet-", n), spec(fleet(n, "Kustomization"))))
	}
	w.noHold(fred, w.tooMany("fred", "HelmReleases", "fleet", releases), "create", "-f", w.hold("fleet", spec(append(fleet(200, "Kustomization"), fleet(1, "HelmRelease")...))))
	w.noHold(fred, w.mayNotHold("fred", "HelmReleases", "tenant-0", "fleet-256", releases), "patch", "gate", "fleet-256", "--type=json",
		"-p", `[{"op":"replace","path":"/spec/targets/0","value":{"kind":"HelmRelease","name":"*","namespace":"tenant-0"}}]`)
	watched := fmt.Sprintf("user fred may not watch Kustomizations in so many namespaces by gate %s/fleet: more than %d kinds and namespaces at once need the verb get on %s in all namespaces\n", w.Namespace, most, apps)
	w.noHold(fred, watched, "create", "-f", w.hold("fleet", spec(fleet(most, "Kustomization"), v1alpha1.DependencyReference{Kind: "Kustomization", Name: "infra"})))
	w.allowed(bob, "patch", "gate", "fleet-256", "--type=merge", "-p", `{"spec":{"interval":"2m"}}`)
	w.allowed(w.clusterAdmin(), "create", "-f", w.hold("fleet", spec(append(fleet(128, "Kustomization"), fleet(128, "HelmRelease")...))))
}

func TestAGateInGitHoldsWhatWhoAppliesItMayPatch(t *testing.T) {
	r := newGit(t, editor, viewer)
	commit := func(spec string) {
		r.Helper()
		r.commitManifest(`{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"production","namespace":"` + r.Namespace + `"},"spec":` + spec + `}`)
	}
	refused := func(cause string) {
		r.Helper()
		if ready := r.sync(); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message+"\n", strings.TrimSpace(cause)) {
			r.Errorf("Ready is %+v, not for %s", ready, cause)
		}
	}
	commit(`{"default":"closed","targets":[{"kind":"Kustomization","name":"apps"}]}`)
	refused(r.mayNotHold(r.tenant, "Kustomizations", r.Namespace, "production", apps))
	take := r.bind(r.tenant, false, "patch", nil, apps)
	r.synced()
	take()
	r.Eventually("the tenant may no more", func() error {
		if out, err := cluster.Kubectl(r.Context(), "auth", "can-i", "patch", apps, "--namespace="+r.Namespace, "--as="+r.tenant); err == nil {
			return fmt.Errorf("still %s", out)
		}
		return nil
	})
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: r.Namespace}}
	r.decided(g, metav1.ConditionFalse)
	r.settled(g)
	commit(`{"default":"closed","interval":"2m","targets":[{"kind":"Kustomization","name":"apps"}]}`)
	r.synced()
	commit(`{"default":"closed","interval":"2m","targets":[{"kind":"Kustomization","name":"apps"},{"kind":"Kustomization","name":"more"}]}`)
	refused(r.mayNotHold(r.tenant, "Kustomizations", r.Namespace, "production", apps))
	commit(`{"default":"closed"}`)
	r.synced()
	if targets := r.get(g).Spec.Targets; len(targets) > 0 {
		t.Errorf("the targets are %+v", targets)
	}
}
