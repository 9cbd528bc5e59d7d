package house

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

// The policy passes a kind that it does not know, so it has to know all that can be held. The
// resources are those of the role, in the list of what the controller may do.
func TestThePolicyOnTargetsKnowsEachKind(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(root, "config", "policies", "target_verb.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policy, resources := string(content), map[string]string{}
	for _, row := range regexp.MustCompile(`\n        \['(\w+)', '(\w+)', '([a-z0-9.-]+)'\]`).FindAllStringSubmatch(policy, -1) {
		kind, plural, group := row[1], row[2], row[3]
		resources[kind+"."+group] = strings.ToLower(plural) + "." + group
	}
	for _, adapter := range target.All() {
		kind := adapter.GroupKind().String()
		if resource, ok := resources[kind]; !ok {
			t.Errorf("the policy does not know %s", kind)
		} else if mayDo[resource] == nil {
			t.Errorf("the policy has %s for %s", resource, kind)
		}
	}
	if got, want := len(resources), len(target.All()); got != want {
		t.Errorf("%d kinds, want %d: %v", got, want, resources)
	}
	if checks := strings.Count(policy, ".allowed()"); checks < 2*len(resources) {
		t.Errorf("%d checks are too few for %d kinds, each held and watched", checks, len(resources))
	}
}
