package install

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// mayOf returns the output of "kubectl auth can-i --list" for a service account in the namespace of the controller: verbs by resource,
// with the names of objects if the permission is limited to them.
func mayOf(ctx context.Context, name string) (map[string]string, error) {
	out, err := cluster.Kubectl(ctx, "auth", "can-i", "--list", "--no-headers", "-n", harness.RuntimeNamespace,
		"--as=system:serviceaccount:"+harness.RuntimeNamespace+":"+name, "--as-group=system:serviceaccounts", "--as-group=system:authenticated")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	for _, found := range regexp.MustCompile(`(?m)^(\S+) +\[\] +\[(.*?)\] +\[(.*?)\]$`).FindAllStringSubmatch(out, -1) {
		resource, names, verbs := found[1], found[2], strings.Fields(found[3])
		slices.Sort(verbs)
		if names != "" {
			resource += " " + names
		}
		all[resource] = strings.Join(verbs, ", ")
	}
	return all, nil
}

// rows returns the rows of the table in docs/secure/permissions.md: the permissions that the controller has with some manifests, but not
// without them.
func rows(of string, with, without map[string]string) string {
	resources := map[string][]string{}
	for resource, verbs := range with {
		if without[resource] != verbs {
			resources[verbs] = append(resources[verbs], resource)
		}
	}
	var text strings.Builder
	for _, verbs := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[verbs])
		fmt.Fprintf(&text, "| `%s` | %s | %s |\n", of, verbs, strings.Join(resources[verbs], ", "))
	}
	return text.String()
}

// rulesIn returns the RBAC objects and the namespaces that kustomize builds from a folder.
func rulesIn(t *testing.T, folder string) objects {
	t.Helper()
	all, err := rendered(folder)
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(all, func(_ string, o *unstructured.Unstructured) bool {
		return o.GroupVersionKind().Group != rbacv1.GroupName && o.GetKind() != "Namespace"
	})
	return all
}

func TestPermissionsPage(t *testing.T) {
	list := func(name string) map[string]string {
		t.Helper()
		may, err := mayOf(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return may
	}
	apply := func(all objects) {
		t.Helper()
		for _, key := range slices.Sorted(maps.Keys(all)) { // Namespaces before their Roles
			obj := all[key]
			content, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if err := cluster.Client.Patch(t.Context(), obj.DeepCopy(), client.RawPatch(types.ApplyPatchType, content), client.ForceOwnership, client.FieldOwner("kubectl")); err != nil {
				t.Fatal(err)
			}
		}
	}
	base, more := rulesIn(t, filepath.Join(harness.Root(), "config", "default")), map[string]objects{}
	remove := func(ctx context.Context, all objects) {
		for key, obj := range all {
			if base[key] == nil {
				if err := cluster.Client.Delete(ctx, obj); client.IgnoreNotFound(err) != nil {
					t.Error(err)
				}
			}
		}
	}
	for name := range addOns { // an earlier test may not have deleted all of them
		more[name] = rulesIn(t, kustomization(t, name))
		remove(t.Context(), more[name])
		t.Cleanup(func() { remove(context.WithoutCancel(t.Context()), more[name]) })
	}
	apply(base)
	alone := list("gating-controller")
	want := rows("config/default", alone, list("nobody"))
	for _, name := range slices.Sorted(maps.Keys(addOns)) {
		apply(more[name])
		want += rows("config/"+name, list("gating-controller"), alone)
		remove(t.Context(), more[name])
	}
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "secure", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n|---|---|---|\n"+want+"\n") {
		t.Errorf("docs/secure/permissions.md does not list\n%s", want)
	}
}
