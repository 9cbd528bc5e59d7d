package install

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// addOns are the folders of config that extend config/default. The value is true for kustomize components.
var addOns = map[string]bool{
	"activation": false, "availability": true, "calendar-feed": true, "calendars": false, "flagger": true, "lock": false, "machines": false, "metrics": true, "monitoring": false, "notifications": true, "policies": false, "sharding": true, "suspend-kinds": true, "ui": true, "webhooks": false,
}

// noAddOns are the other folders of config. policies-1.30 replaces policies.
var noAddOns = []string{"chart", "crd", "default", "flux-alerts", "k9s", "manager", "policies-1.30", "rbac", "samples"}

func TestConfigFoldersAreClassified(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(harness.Root(), "config"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if entry.IsDir() {
			found = append(found, entry.Name())
		}
	}
	want := slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Keys(addOns)), noAddOns)))
	if !slices.Equal(found, want) {
		t.Errorf("config has the folders %q, the tests list %q", found, want)
	}
}

func TestInstallPageListsAddOns(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", "start", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `config/([a-z0-9.-]+)` \\| `?([a-z0-9.-]+)`? \\|").FindAllStringSubmatch(string(page), -1) {
		if listed[row[1]] = row[2] == "component"; !listed[row[1]] && row[2] != row[1]+".yaml" {
			t.Errorf("a release has no file %s for config/%s", row[2], row[1])
		}
	}
	want := maps.Clone(addOns)
	want["policies-1.30"] = false
	if !maps.Equal(listed, want) {
		t.Errorf("the page lists %v, the add-ons are %v", listed, want)
	}
}

// kustomization writes a kustomization.yaml with config/default and some add-ons, in this order, and returns its folder.
func kustomization(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.CopyFS(filepath.Join(folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))); err != nil {
		t.Fatal(err)
	}
	text := "resources:\n- config/default\n"
	for _, component := range []bool{false, true} {
		if component {
			text += "components:\n"
		}
		for _, name := range names {
			if addOns[name] == component {
				text += "- config/" + name + "\n"
			}
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// objects are the objects that kustomize builds, by kind, namespace and name.
type objects map[string]*unstructured.Unstructured

func rendered(folder string) (objects, error) {
	out, err := harness.Kustomize(folder)
	if err != nil {
		return nil, err
	}
	all := objects{}
	for _, document := range strings.Split(out, "\n---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			return nil, err
		}
		key := fmt.Sprintf("%s %s/%s", obj.GetKind(), obj.GetNamespace(), obj.GetName())
		if all[key] != nil {
			return nil, fmt.Errorf("there are two of %s", key)
		}
		if all[key] = obj; obj.GetKind() == "Deployment" {
			flags(obj)
		}
	}
	return all, nil
}

// flags returns the flags and ports of the controller in a Deployment, sorted because their order depends on that of the add-ons.
func flags(deployment *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	controller, _ := containers[0].(map[string]any)
	var all []string
	for _, field := range []string{"args", "ports"} {
		list, _ := controller[field].([]any)
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		for _, item := range list {
			all = append(all, fmt.Sprint(item))
		}
	}
	if err := unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"); err != nil {
		panic(err) // the object was decoded before
	}
	return all
}

// A combination of add-ons must have everything that each add-on adds alone, in either order.
func TestAddOnsComposeInAnyCombination(t *testing.T) {
	alone := map[string]objects{}
	for name := range addOns {
		var err error
		if alone[name], err = rendered(kustomization(t, name)); err != nil {
			t.Fatal(err)
		}
	}
	names := slices.Sorted(maps.Keys(addOns))
	sets := [][]string{names}
	for i := range names {
		for k := range i {
			sets = append(sets, []string{names[k], names[i]})
		}
	}
	for _, chosen := range sets {
		t.Run("with "+strings.Join(chosen, ","), func(t *testing.T) {
			t.Parallel()
			together, err := rendered(kustomization(t, chosen...))
			if err != nil {
				t.Fatal(err)
			}
			backwards := slices.Clone(chosen)
			slices.Reverse(backwards)
			if again, err := rendered(kustomization(t, backwards...)); err != nil || !same(together, again) {
				t.Errorf("the objects differ in the other order, %v", err)
			}
			for _, name := range chosen {
				has(t, together, name, alone[name])
			}
		})
	}
}

// "flux uninstall" deletes each CustomResourceDefinition, ClusterRole and ClusterRoleBinding with the label part-of=flux.
func TestObjectsHavePartOfLabel(t *testing.T) {
	all := slices.Collect(maps.Keys(addOns))
	folders := map[string]string{
		"all add-ons": kustomization(t, all...), "config/crd": filepath.Join(harness.Root(), "config", "crd"),
		"config/policies-1.30": filepath.Join(harness.Root(), "config", "policies-1.30"),
	}
	for name, folder := range folders {
		objects, err := rendered(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(objects) == 0 {
			t.Errorf("%s: no objects", name)
		}
		for key, obj := range objects {
			if part := obj.GetLabels()["app.kubernetes.io/part-of"]; part != "gating-controller" && (name != "config/crd" || part != "") {
				t.Errorf("%s: %s has the label part-of=%q, want gating-controller", name, key, part)
			}
		}
	}
}

// same returns whether the same objects have the same content.
func same(a, b objects) bool {
	return maps.EqualFunc(a, b, func(a, b *unstructured.Unstructured) bool { return fmt.Sprint(a.Object) == fmt.Sprint(b.Object) })
}

// has checks that the objects of a single add-on are in a combination. There, the controller may have more flags and ports.
func has(t *testing.T, together objects, name string, alone objects) {
	t.Helper()
	for key, obj := range alone {
		there := together[key]
		switch {
		case there == nil:
			t.Errorf("%s: %s is missing", name, key)
		case obj.GetKind() == "Deployment":
			for _, flag := range flags(obj) {
				if !slices.Contains(flags(there), flag) {
					t.Errorf("%s: %s lacks %s", name, key, flag)
				}
			}
		case fmt.Sprint(obj.Object) != fmt.Sprint(there.Object):
			t.Errorf("%s: %s differs", name, key)
		}
	}
}

func TestAddOnsApplyAloneAndTogether(t *testing.T) {
	apply := func(folder string) {
		t.Helper()
		if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", folder); err != nil || strings.Contains(out, "Warning") {
			t.Fatalf("%s, %v", out, err)
		}
	}
	installRules(t)
	for _, name := range slices.Sorted(maps.Keys(addOns)) {
		apply(kustomization(t, name))
	}
	apply(kustomization(t, slices.Collect(maps.Keys(addOns))...))
}

// installRules installs the definition of PrometheusRules.
func installRules(t *testing.T) {
	t.Helper()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(rules, []byte(prometheusKinds), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"apply", "-f", rules}, {"wait", "--for=condition=Established", "--timeout=30s", "-f", rules}} {
		if _, err := cluster.Kubectl(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
}

// prometheusKinds has the CustomResourceDefinitions of the objects in config/monitoring, without their schemas.
const prometheusKinds = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: podmonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: PodMonitor, plural: podmonitors}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: prometheusrules.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  names: {kind: PrometheusRule, plural: prometheusrules}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// A Pod with a fixed user or group is refused by the security context constraints of OpenShift.
func TestManifestsSetNoUser(t *testing.T) {
	all := built(t, "resources:\n- config/default\ncomponents:\n- config/availability\n- config/sharding\n- config/ui\n- config/flagger\n- config/calendar-feed\n- config/metrics\n")
	pods := 0
	for key, obj := range all {
		if !strings.HasPrefix(key, "Deployment ") {
			continue
		}
		pods++
		for _, field := range []string{"runAsUser", "runAsGroup", "fsGroup", "supplementalGroups", "seLinuxOptions"} {
			if strings.Contains(fmt.Sprint(obj.Object), field) {
				t.Errorf("%s sets %s", key, field)
			}
		}
	}
	if pods != 2 {
		t.Errorf("%d deployments", pods)
	}
}
