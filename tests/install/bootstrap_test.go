package install

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestAPIServerWarnsAboutHoldOfBootstrapSource(t *testing.T) {
	w := harness.NewWorld(t, cluster)
	if _, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", kustomization(t)); err != nil {
		t.Fatal(err)
	}
	const warning = "Warning: Validation failed for ValidatingAdmissionPolicy 'gating-bootstrap'"
	apply := func(target string) string {
		t.Helper()
		out, err := bash(t.Context(), t.TempDir(), fmt.Sprintf("kubectl apply --dry-run=server -n %s -f - 2>&1 <<'EOF'\n"+
			"apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\nmetadata: {name: freeze}\nspec: {default: opened, targets: [%s]}\nEOF\n", w.Namespace, target))
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return out
	}
	const held = `{kind: GitRepository, name: "*", namespace: flux-system}`
	w.Eventually("the policy is in force", func() error {
		if out := apply(held); !strings.Contains(out, warning) {
			return fmt.Errorf("got output %s", out)
		}
		return nil
	})
	for _, target := range []string{
		`{kind: GitRepository, name: "*", namespace: flux-system, matchLabels: {team: shop}}`, `{kind: GitRepository, name: "*"}`,
		`{kind: Kustomization, name: apps, namespace: flux-system}`,
	} {
		if out := apply(target); strings.Contains(out, "Warning") {
			t.Errorf("%s: got output %s", target, out)
		}
	}
}
