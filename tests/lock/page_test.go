package lock

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// TestThePageOnTheLockShowsWhatItRefuses runs docs/secure/lock.md. Other tests go on with the lock, so it is not really removed.
func TestThePageOnTheLockShowsWhatItRefuses(t *testing.T) {
	w := newWorld(t)
	spec := w.locked()
	gate := w.gate("production")
	spec.Targets = map[string][]string{"Kustomization/apps": {gate}, "Kustomization/shop": {gate}}
	w.lock(spec)
	w.Create(w.inGit("apps"))
	shop := filepath.Join(t.TempDir(), "shop.yaml")
	w.Must(os.WriteFile(shop, []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop}\n"+
		"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: none}}\n"), 0o600))
	run := func(command string) (string, error) {
		command = strings.NewReplacer("shop.yaml", shop, "delete -k config/", "delete --dry-run=server -k config/").Replace(command)
		shell := exec.CommandContext(w.Context(), "bash", "-c", strings.ReplaceAll(command, "-k config/", "-k "+harness.Root()+"/config/"))
		shell.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "PATH="+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"))
		out, err := shell.CombinedOutput()
		return string(out), err
	}
	ran := 0
	for _, block := range markdown.BlocksOf(t, "docs/secure/lock.md", "console", "sh") {
		if block.Language == "sh" {
			ran++
			if out, err := run(block.Text); err != nil {
				t.Errorf("%s: %v: %s", block.Text, err, out)
			}
			continue
		}
		for _, part := range strings.Split("\n"+block.Text, "\n$ ")[1:] {
			ran++
			command, want, _ := strings.Cut(strings.ReplaceAll(part, "flux-system", w.Namespace), "\n")
			if out, _ := run(command); strings.TrimSpace(out) != strings.TrimSpace(want) { // a refusal is what is expected
				t.Errorf("%s\nprints\n%s\nand the page has\n%s", command, out, want)
			}
		}
	}
	if ran != 7 {
		t.Errorf("%d commands", ran)
	}
}
