package install

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// patched returns what the blocks of a page that are for kustomize make, one after the other in one kustomization.yaml.
func patched(t *testing.T, name string) objects {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(harness.Root(), "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, block := range regexp.MustCompile("(?s)\n( *)```yaml\n(.*?)\n *```").FindAllStringSubmatch(string(page), -1) {
		lines := strings.ReplaceAll("\n"+block[2], "\n"+block[1], "\n")
		if strings.Contains(lines, "kind: Kustomization\nresources:") || strings.HasPrefix(lines, "\npatches:") {
			text += lines
		}
	}
	folder := kustomization(t)
	if err := os.WriteFile(filepath.Join(folder, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := rendered(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestThePatchesOfThePagesDoWhatTheySay(t *testing.T) {
	sends := strings.Join(flags(patched(t, "guides/notifications.md")["Deployment gating-system/gating-controller"]), "\n")
	if flag := "--events-addr=http://notification-controller.flux-system.svc.cluster.local./"; !strings.Contains(sends, flag) {
		t.Errorf("the controller has the flags\n%s", sends)
	}
	const binding = "ClusterRoleBinding /gating-controller-calendar-feed"
	all := patched(t, "guides/subscribe.md")
	if all["ClusterRole /gating-controller-calendar-feed"] == nil || all[binding] != nil {
		t.Errorf("the role without its binding was meant, there are %q", slices.Sorted(maps.Keys(all)))
	}
	feed, err := rendered(t.Context(), kustomization(t, "calendar-feed"))
	if err != nil || feed[binding] == nil {
		t.Errorf("without the patch there is no %s, %v", binding, err)
	}
}
