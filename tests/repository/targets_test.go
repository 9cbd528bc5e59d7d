package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/target"
)

// The policy allows kinds that it does not list, so it must list all kinds that can be held. The resources are those of the controller's
// role, in mayDo.
func TestTargetPolicyCoversAllKinds(t *testing.T) {
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
			t.Errorf("the policy lacks the kind %s", kind)
		} else if mayDo[resource] == nil {
			t.Errorf("the policy has %s for %s", resource, kind)
		}
	}
	if got, want := len(resources), len(target.All()); got != want {
		t.Errorf("%d kinds, want %d: %v", got, want, resources)
	}
	checks := strings.Count(policy, ".allowed()")
	if checks < 2*len(resources) {
		t.Errorf("%d checks are too few for %d kinds, each as a target and as a dependency", checks, len(resources))
	}
	// The policy refuses a request that needs more checks.
	want := []string{fmt.Sprintf("- expression: size(variables.asks) <= %d\n", checks), fmt.Sprintf("size(variables.rest%d) == 0\n", checks)}
	for i := range checks {
		want = append(want, fmt.Sprintf("size(variables.asks) <= %[1]d || variables.checks[%[1]d].check(variables.asks[%[1]d][1]).allowed()\n    messageExpression: \"variables.refusals[%[1]d]\"\n", i),
			fmt.Sprintf("- name: rest%d\n    expression: variables.rest%[2]d.filter(a, a != variables.rest%[2]d[0])\n", i+1, i))
	}
	for _, text := range want {
		if !strings.Contains(policy, text) {
			t.Errorf("the policy lacks %s", text)
		}
	}
}
