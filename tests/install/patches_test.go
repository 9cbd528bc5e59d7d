package install

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestThePatchOfThePageOnSubscriptionsTakesTheBindingAway(t *testing.T) {
	const binding = "ClusterRoleBinding /gating-controller-calendar-feed"
	all := built(t, strings.Join(blocksFor(t, "docs/guides/subscribe.md"), ""))
	if all["ClusterRole /gating-controller-calendar-feed"] == nil || all[binding] != nil {
		t.Errorf("the role without its binding was meant, there are %q", slices.Sorted(maps.Keys(all)))
	}
	feed, err := rendered(t.Context(), kustomization(t, "calendar-feed"))
	if err != nil || feed[binding] == nil {
		t.Errorf("without the patch there is no %s, %v", binding, err)
	}
}

func TestThePageOnPagesShowsThemToEverybody(t *testing.T) {
	all := built(t, strings.Join(blocksFor(t, "docs/guides/page-on-the-wall.md"), ""))
	if shown := flags(all["Deployment gating-system/gating-controller"]); !slices.Contains(shown, "--ui-addr=:9295") || !slices.Contains(shown, "--ui-anonymous") {
		t.Errorf("the controller has the flags\n%s", strings.Join(shown, "\n"))
	}
}
