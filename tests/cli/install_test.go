package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// TestPluginPage runs the commands of docs/start/plug-in.md on an archive like that of a release. It does not run
// krew, and a function replaces flux.
func TestPluginPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Decided(w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened}))
	home := w.TempDir()
	script := `set -eu
cd "$HOME"; export PATH="$HOME/.local/bin:` + filepath.Join(harness.Tools(), "bin") + `:/usr/bin:/bin"
cp "$ROOT/config/k9s/plugins.yaml" k9s.yaml; cp "$ROOT/cmd/kubectl-gate/kubectl_complete-gate" "$PROGRAM" .
tar -czf kubectl-gate_v0.1.0_linux_amd64.tar.gz k9s.yaml kubectl-gate kubectl_complete-gate
rm k9s.yaml kubectl-gate kubectl_complete-gate
flux() { plugin=$1; shift; "$HOME/.fluxcd/plugins/flux-$plugin" "$@"; }
`
	n := 0
	for _, block := range markdown.BlocksOf(w, "docs/start/plug-in.md", "sh") {
		if n++; strings.Contains(block.Text, "krew") {
			continue
		}
		script += strings.ReplaceAll(block.Text, "kubectl gate check", "kubectl gate check || test $? = 1")
		script += "test \"$(kubectl __complete gate list pro 2>/dev/null | head -1)\" = production\n"
	}
	script += "flux gate list; grep -q gate-open: .config/k9s/plugins/gate.yaml; complete -p kubectl-gate\n"
	got := w.shell("export HOME=" + home + " ROOT=" + harness.Root() + " PROGRAM=" + program() + "\n" + script)
	if n < 7 {
		w.Errorf("the page has %d blocks", n)
	}
	w.expect(got, 0, "production   opened", "")
}
