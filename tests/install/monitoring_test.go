package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

func TestMonitoringPage(t *testing.T) {
	blocks := markdown.BlocksOf(t, "docs/operate/monitoring.md", "sh")
	if len(blocks) != 1 {
		t.Fatalf("%d commands", len(blocks))
	}
	installRules(t)
	folder := kustomization(t)
	if out, err := cluster.Kubectl(t.Context(), "apply", "--server-side", "--force-conflicts", "-k", folder); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	if out, err := bash(t.Context(), folder, blocks[0].Text); err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	for _, object := range []string{"podmonitor/gating-controller", "prometheusrule/gating-controller"} {
		if out, err := cluster.Kubectl(t.Context(), "-n", "gating-system", "get", object); err != nil {
			t.Errorf("%s, %v", out, err)
		}
	}
	kept, err := cluster.Kubectl(t.Context(), "-n", "gating-system", "get", "configmap", "-l", "grafana_dashboard=1", "-o", `jsonpath={.items[*].data.dashboard\.json}`)
	file, fileErr := os.ReadFile(filepath.Join(harness.Root(), "config", "monitoring", "dashboard.json"))
	if err != nil || fileErr != nil || strings.TrimSpace(kept) != strings.TrimSpace(string(file)) {
		t.Errorf("the ConfigMap has %d bytes, the file %d: %v, %v", len(kept), len(file), err, fileErr)
	}
}
