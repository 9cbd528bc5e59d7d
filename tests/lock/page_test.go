package lock

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// TestLockPageShowsRefusals follows docs/secure/lock.md. It removes the lock only in a dry run, because other tests still
// need it.
func TestLockPageShowsRefusals(t *testing.T) {
	w := newWorld(t)
	spec := w.locked()
	gate := w.gate("production")
	spec.Targets = map[string][]string{"Kustomization/apps": {gate}, "Kustomization/shop": {gate}}
	w.lock(spec)
	w.Create(w.inGit("apps"))
	reader := docs.Start(t, docs.Reader{Kubeconfig: cluster.Kubeconfig, Words: strings.NewReplacer("flux-system", w.Namespace, "delete -k config/", "delete --dry-run=server -k config/")})
	w.Must(os.WriteFile(filepath.Join(reader.Folder, "shop.yaml"), []byte("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: shop}\n"+
		"spec: {interval: 1h, prune: true, sourceRef: {kind: GitRepository, name: none}}\n"), 0o600))
	reader.Follow(markdown.BlocksOf(t, "docs/secure/lock.md", "console", "sh")...)
}
