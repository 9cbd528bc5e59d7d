package policies

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// apps and releases are what most people of these tests hold.
const (
	apps     = "kustomizations.kustomize.toolkit.fluxcd.io"
	releases = "helmreleases.helm.toolkit.fluxcd.io"
)

// most is how many kinds and namespaces the policy checks at once. The API server affords 27.
const most = 26

// holdFile writes a closed Gate with more of a spec into a folder and returns the path.
func holdFile(dir, name, spec string) string {
	content := map[string]any{"default": "closed"}
	err := json.Unmarshal([]byte(spec), &content)
	metadata := map[string]any{"name": name}
	if prefix, ok := strings.CutPrefix(name, "generateName: "); ok {
		metadata = map[string]any{"generateName": prefix}
	}
	manifest, failed := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.GateKind, "metadata": metadata, "spec": content,
	})
	path := filepath.Join(dir, "gate.json")
	if err == nil && failed == nil {
		err = os.WriteFile(path, manifest, 0o600)
	}
	if err != nil {
		panic(err)
	}
	return path
}

// hold returns the manifest of a Gate in a file.
func (w *world) hold(name, spec string) string {
	w.Helper()
	return holdFile(w.TempDir(), name, spec)
}

// spec is targets and what is watched as a spec.
func spec(targets []v1alpha1.TargetReference, watch ...v1alpha1.DependencyReference) string {
	content, err := json.Marshal(map[string]any{"targets": targets, "dependsOn": watch})
	if err != nil {
		panic(err)
	}
	return string(content)
}

// mayOn lets somebody do something with resources, as in kustomizations.kustomize.toolkit.fluxcd.io, in this namespace.
func (w *world) mayOn(user, verb string, resources ...string) {
	w.Helper()
	w.bind(user, false, verb, nil, resources...)
}

// bind does it in all namespaces if so, and for objects with these names alone, production among them. It returns what takes
// it away.
func (w *world) bind(user string, everywhere bool, verb string, names []string, resources ...string) (take func()) {
	w.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{GenerateName: "policies-"}}
	for _, resource := range resources {
		name, group, _ := strings.Cut(resource, ".")
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{name}, Verbs: []string{verb}, ResourceNames: names})
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
		w.mayBy(user, verb, name, group)
	}
	return take
}

// mayNotHold is the refusal of a target, and mayNotWatch that of what is watched.
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

// tooMany is the refusal of more than the policy checks one by one.
func (w *world) tooMany(user, kinds, gate, resource string) string {
	return fmt.Sprintf("user %s may not hold %s in so many namespaces by gate %s/%s: more than %d kinds and namespaces at once need the verb patch on %s in all namespaces\n",
		user, kinds, w.Namespace, gate, most, resource)
}

// noHold runs kubectl, which must be refused for a cause, create no Gate and change no spec.
func (w *world) noHold(p *person, cause string, args ...string) {
	w.Helper()
	specs := func() map[string]v1alpha1.GateSpec {
		list, found := &v1alpha1.GateList{}, map[string]v1alpha1.GateSpec{}
		w.Must(cluster.Client.List(w.Context(), list, client.InNamespace(w.Namespace)))
		for i := range list.Items {
			found[list.Items[i].Name] = list.Items[i].Spec
		}
		return found
	}
	before := specs()
	out, err := p.kubectl(w.Context(), w.Namespace, args...)
	if err == nil {
		w.Errorf("%q by %s is allowed: %s", args, p.Name, out)
	} else if !strings.Contains(out+"\n", cause) {
		w.Errorf("%q by %s is refused\nfor   %s\nnot for %q", args, p.Name, out, cause)
	}
	if after := specs(); !reflect.DeepEqual(before, after) {
		w.Errorf("%q by %s makes\n%+v of\n%+v", args, p.Name, after, before)
	}
}

// kindsAndResources are all that a Gate can hold, by kind, as in the docs: the plural in lower case and the group.
func kindsAndResources() (kinds, resources []string) {
	for _, adapter := range target.All() {
		of := adapter.GroupKind()
		kinds, resources = append(kinds, of.Kind), append(resources, strings.ToLower(pluralOf(of.Kind))+"."+of.Group)
	}
	return kinds, resources
}

// pluralOf returns the plural of a kind as messages have it.
func pluralOf(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}
