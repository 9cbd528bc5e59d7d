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

	"github.com/fluxcd/gating-controller/tests/harness"
)

// mayOf returns what "kubectl auth can-i --list" says of a service account in the namespace of the controller: verbs, and the names of
// objects if it is about some alone, by resource.
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

// rows are those of the table in docs/secure/permissions.md: what the controller may do with some manifests that it may not do without.
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

func TestThePageOnPermissionsListsWhatTheControllerMayDo(t *testing.T) {
	list := func(name string) map[string]string {
		t.Helper()
		may, err := mayOf(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return may
	}
	kubectl := func(args ...string) {
		t.Helper()
		if _, err := cluster.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	config := func(name string) string { return filepath.Join(harness.Root(), "config", name) }
	installRules(t)
	for name := range addOns { // an earlier test may have left some
		if !addOns[name] {
			kubectl("delete", "--ignore-not-found", "-k", config(name))
		}
	}
	kinds := []string{"delete", "--ignore-not-found", "clusterrole,clusterrolebinding", "gating-controller-kinds", "gating-controller-calendar-feed", "gating-controller-ui"}
	kubectl(kinds...)
	t.Cleanup(func() { _, _ = cluster.Kubectl(context.WithoutCancel(t.Context()), kinds...) })
	kubectl("apply", "--server-side", "--force-conflicts", "-k", config("default"))
	alone := list("gating-controller")
	want := rows("config/default", alone, list("nobody"))
	for _, name := range slices.Sorted(maps.Keys(addOns)) {
		folder := kustomization(t, name)
		kubectl("apply", "--server-side", "--force-conflicts", "-k", folder)
		want += rows("config/"+name, list("gating-controller"), alone)
		if !addOns[name] {
			kubectl("delete", "-k", config(name))
		}
		kubectl(kinds...)
	}
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "secure", "permissions.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "\n|---|---|---|\n"+want+"\n") {
		t.Errorf("docs/secure/permissions.md does not list\n%s", want)
	}
}
