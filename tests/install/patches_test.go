package install

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestThePatchOfThePageOnSubscriptionsTakesTheBindingAway(t *testing.T) {
	const binding = "ClusterRoleBinding /gating-controller-calendar-feed"
	all := built(t, strings.Join(blocksFor(t, filepath.Join(harness.Root(), "docs", "guides", "subscribe.md")), ""))
	if all["ClusterRole /gating-controller-calendar-feed"] == nil || all[binding] != nil {
		t.Errorf("the role without its binding was meant, there are %q", slices.Sorted(maps.Keys(all)))
	}
	if shown := strings.Join(flags(patched(t, "guides/page-on-the-wall.md")["Deployment gating-system/gating-controller"]), "\n"); !strings.Contains(shown, "--ui-addr=:9295") || !strings.Contains(shown, "--ui-anonymous") {
		t.Errorf("the controller has the flags\n%s", shown)
	}
	feed, err := rendered(t.Context(), kustomization(t, "calendar-feed"))
	if err != nil || feed[binding] == nil {
		t.Errorf("without the patch there is no %s, %v", binding, err)
	}
}
