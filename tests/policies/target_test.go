package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// apps and releases are the resources that most tests hold.
const (
	apps     = "kustomizations.kustomize.toolkit.fluxcd.io"
	releases = "helmreleases.helm.toolkit.fluxcd.io"
)

// most is how many kinds and namespaces the policy checks at once. The cost limit of the API server allows 27.
const most = 26

// spec returns a spec with targets and dependencies.
func spec(targets []v1alpha1.TargetReference, watch ...v1alpha1.DependencyReference) string {
	content, err := json.Marshal(map[string]any{"targets": targets, "dependsOn": watch})
	if err != nil {
		panic(err)
	}
	return string(content)
}

// mayOn grants a user verbs on resources, such as kustomizations.kustomize.toolkit.fluxcd.io, in this namespace.
func (w *world) mayOn(user, verbs string, resources ...string) {
	w.Helper()
	w.bind(user, false, verbs, nil, resources...)
}

// bind grants a user verbs on resources, in all namespaces if everywhere is set, and only for objects with these names if there are any,
// including production. The returned function revokes them.
func (w *world) bind(user string, everywhere bool, verbs string, names []string, resources ...string) (take func()) {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}}
	for _, resource := range resources {
		name, group, _ := strings.Cut(resource, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}, Verbs: strings.Fields(verbs), ResourceNames: names})
	}
	w.Create(role)
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	var binding client.Object = &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: w.Namespace}, RoleRef: ref, Subjects: subjects}
	if everywhere {
		binding = &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: ref, Subjects: subjects}
	}
	w.Create(binding)
	take = sync.OnceFunc(func() {
		w.Must(cluster.Client.Delete(context.Background(), binding))
		w.Must(cluster.Client.Delete(context.Background(), role))
	})
	w.Cleanup(take)
	for _, resource := range resources {
		name, group, _ := strings.Cut(resource, ".")
		w.mayBy(user, strings.Fields(verbs)[0], name, group)
	}
	return take
}

// mayNotHold is the refusal of a target, and mayNotWatch that of a dependency.
func (w *world) mayNotHold(user, kinds, namespace, gate, resource string) string {
	return fmt.Sprintf("user %s may not hold %s in namespace %s by gate %s/%s: that needs the verb patch on %s\n", user, kinds, namespace, w.Namespace, gate, resource)
}

// mayNotHoldAnywhere is the refusal of Kustomizations that span namespaces.
func (w *world) mayNotHoldAnywhere(user, gate string) string {
	return fmt.Sprintf("user %s may not hold Kustomizations in all namespaces by gate %s/%s: that needs the verb patch on %s there\n", user, w.Namespace, gate, apps)
}

func (w *world) mayNotWatch(user, kinds, namespace, gate, resource string) string {
	return fmt.Sprintf("user %s may not watch %s in namespace %s by gate %s/%s: that needs the verb get on %s\n", user, kinds, namespace, w.Namespace, gate, resource)
}

// tooMany is the refusal of more targets than the policy checks one by one.
func (w *world) tooMany(user, kinds, gate, resource string) string {
	return fmt.Sprintf("user %s may not hold %s in so many namespaces by gate %s/%s: more than %d kinds and namespaces at once need the verb patch on %s in all namespaces\n",
		user, kinds, w.Namespace, gate, most, resource)
}

// kindsAndResources returns all kinds that a Gate can hold, and their resources as in the docs: the plural in lower case and the group.
func kindsAndResources() (kinds, resources []string) {
	for _, adapter := range target.All() {
		of := adapter.GroupKind()
		kinds, resources = append(kinds, of.Kind), append(resources, strings.ToLower(pluralOf(of.Kind))+"."+of.Group)
	}
	return kinds, resources
}

// pluralOf returns the plural of a kind as in messages.
func pluralOf(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}

// expensive returns the most expensive spec: the maximum number of targets and dependencies, with long values, and each kind in this
// namespace, which results in the maximum number of checks.
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

func TestPolicyEvaluatesLargestGate(t *testing.T) {
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
	w.allowed(bob, "create", "-f", holdFile("freeze", spec(targets, watch...)))
	w.refused(dora, w.mayNotWatch("dora", "OCIRepositories", w.Namespace, "second", resources[len(resources)-1]), "create", "-f", holdFile("second", spec(targets, watch...)))

	var above []v1alpha1.TargetReference
	for _, kind := range kinds[:left+1] {
		above = append(above, v1alpha1.TargetReference{Kind: kind, Name: "apps", Namespace: shop.Namespace})
	}
	beyond := slices.Concat(targets[:256-len(above)], above)
	for _, more := range [][]v1alpha1.TargetReference{slices.Concat(above, targets[len(above):]), beyond} {
		w.refused(bob, w.tooMany("bob", "Buckets", "second", resources[0]), "create", "-f", holdFile("second", spec(more, watch...)))
	}
	// All targets are new, and the policy compares each with all old ones.
	others, otherWatch := w.expensive("b")
	w.allowed(bob, "replace", "-f", holdFile("freeze", spec(others, otherWatch...)))
	w.refused(bob, w.tooMany("bob", "Buckets", "freeze", resources[0]), "replace", "-f", holdFile("freeze", spec(beyond, watch...)))
	// In two steps, the change is allowed.
	w.allowed(bob, "replace", "-f", holdFile("freeze", spec(targets, watch...)))
	w.allowed(bob, "replace", "-f", holdFile("freeze", spec(beyond, watch...)))
	// With permissions in all namespaces, one step suffices.
	erna := w.as("erna", editor, viewer)
	w.bind("erna", true, "patch", nil, resources...)
	w.bind("erna", true, "get", nil, resources...)
	w.allowed(erna, "create", "-f", holdFile("second", spec(beyond, watch...)))
	if got := w.ReadGate("second"); len(got.Spec.Targets) != 256 || len(got.Spec.DependsOn) != len(watch) {
		t.Errorf("%d targets, %d dependencies", len(got.Spec.Targets), len(got.Spec.DependsOn))
	}
}

func TestGateForAllNamespacesNeedsClusterWideVerb(t *testing.T) {
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
	w.refused(bob, w.mayNotHold("bob", "Kustomizations", "tenant-0", "fleet", apps), "create", "-f", holdFile("fleet", spec(fleet(most, "Kustomization"))))
	for _, n := range []int{most + 1, 256} {
		w.refused(bob, w.tooMany("bob", "Kustomizations", "fleet", apps), "create", "-f", holdFile("fleet", spec(fleet(n, "Kustomization"))))
		w.allowed(fred, "create", "-f", holdFile(fmt.Sprint("fleet-", n), spec(fleet(n, "Kustomization"))))
	}
	w.refused(fred, w.tooMany("fred", "HelmReleases", "fleet", releases), "create", "-f", holdFile("fleet", spec(append(fleet(200, "Kustomization"), fleet(1, "HelmRelease")...))))
	w.refused(fred, w.mayNotHold("fred", "HelmReleases", "tenant-0", "fleet-256", releases), "patch", "gate", "fleet-256", "--type=json",
		"-p", `[{"op":"replace","path":"/spec/targets/0","value":{"kind":"HelmRelease","name":"*","namespace":"tenant-0"}}]`)
	watched := fmt.Sprintf("user fred may not watch Kustomizations in so many namespaces by gate %s/fleet: more than %d kinds and namespaces at once need the verb get on %s in all namespaces\n", w.Namespace, most, apps)
	w.refused(fred, watched, "create", "-f", holdFile("fleet", spec(fleet(most, "Kustomization"), v1alpha1.DependencyReference{Kind: "Kustomization", Name: "infra"})))
	w.allowed(bob, "patch", "gate", "fleet-256", "--type=merge", "-p", `{"spec":{"interval":"2m"}}`)
	w.allowed(w.clusterAdmin(), "create", "-f", holdFile("fleet", spec(append(fleet(128, "Kustomization"), fleet(128, "HelmRelease")...))))
}

func TestGateInGitHoldsObjectsThatApplierMayPatch(t *testing.T) {
	r := newGit(t, editor, viewer)
	commit := func(spec string) { r.commitManifest(holdFile("production", spec)) }
	commit(`{"targets":[{"kind":"Kustomization","name":"apps"}]}`)
	r.failed(r.mayNotHold(r.tenant, "Kustomizations", r.Namespace, "production", apps))
	take := r.bind(r.tenant, false, "patch", nil, apps)
	r.synced()
	take()
	r.until("the tenant has lost the permission", func() (bool, any) {
		return r.may(r.tenant, "patch", "kustomizations", "kustomize.toolkit.fluxcd.io") != nil, nil
	})
	g := r.ReadGate("production")
	r.decided(g, metav1.ConditionFalse)
	r.settled(g)
	commit(`{"interval":"2m","targets":[{"kind":"Kustomization","name":"apps"}]}`)
	r.synced()
	commit(`{"interval":"2m","targets":[{"kind":"Kustomization","name":"apps"},{"kind":"Kustomization","name":"more"}]}`)
	r.failed(r.mayNotHold(r.tenant, "Kustomizations", r.Namespace, "production", apps))
	commit(`{}`)
	r.synced()
	if targets := r.get(g).Spec.Targets; len(targets) > 0 {
		t.Errorf("the targets are %+v", targets)
	}
}
