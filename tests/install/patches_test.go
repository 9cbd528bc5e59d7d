package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestSubscriptionsPagePatchRemovesBinding(t *testing.T) {
	const binding = "ClusterRoleBinding /gating-controller-calendar-feed"
	all := built(t, strings.Join(blocksFor(t, "docs/guides/subscribe.md"), ""))
	if all["ClusterRole /gating-controller-calendar-feed"] == nil || all[binding] != nil {
		t.Errorf("want the role without its binding, got %q", slices.Sorted(maps.Keys(all)))
	}
	feed, err := rendered(kustomization(t, "calendar-feed"))
	if err != nil || feed[binding] == nil {
		t.Errorf("without the patch, %s is missing, %v", binding, err)
	}
}

func TestTimeZonePageMountsData(t *testing.T) {
	block := strings.Replace(strings.Join(blocksFor(t, "docs/operate/time-zone-data.md"), ""), "- config/default\n", "- config/default\ncomponents:\n- config/sharding\n", 1)
	folder := kustomization(t)
	for name, text := range map[string]string{"kustomization.yaml": block, "zoneinfo.zip": "PK\x03\xff"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := rendered(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gating-controller", "gating-controller-shard1"} {
		d := all["Deployment gating-system/"+name]
		volumes, _, _ := unstructured.NestedSlice(d.Object, "spec", "template", "spec", "volumes")
		if !slices.Contains(flags(d), "--zoneinfo=/zoneinfo/zoneinfo.zip") || len(volumes) != 1 {
			t.Fatalf("%s has the volumes %v and the flags %q", name, volumes, flags(d))
		}
		configMap, _, _ := unstructured.NestedString(volumes[0].(map[string]any), "configMap", "name")
		if data, _, _ := unstructured.NestedString(all["ConfigMap gating-system/"+configMap].Object, "binaryData", "zoneinfo.zip"); data != "UEsD/w==" {
			t.Errorf("%s mounts the ConfigMap %s with %q", name, configMap, data)
		}
	}
}

func TestWebUIPage(t *testing.T) {
	all := built(t, strings.Join(blocksFor(t, "docs/guides/page-on-the-wall.md"), ""))
	if shown := flags(all["Deployment gating-system/gating-controller"]); !slices.Contains(shown, "--ui-addr=:9295") || !slices.Contains(shown, "--ui-anonymous") {
		t.Errorf("the controller has the flags\n%s", strings.Join(shown, "\n"))
	}
}
