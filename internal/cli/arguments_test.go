package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// Without a cluster, an accepted argument results in an error about the cluster.
func TestAllCommandsParseNamesEqually(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	const server = " --server http://127.0.0.1:1"
	for line, want := range map[string]string{
		"open source/apps": `unsupported kind "source": use gate/NAME`, "close exception/hotfix": `unsupported kind "exception": use gate/NAME`,
		"list kustomization/apps": `unsupported kind "kustomization": use gate/NAME`, "status exception/hotfix": `unsupported kind "exception": use gate/NAME`,
		"exception source/apps --for 1h": `unsupported kind "source": use gate/NAME`, "proceed source/apps": `unsupported kind "source": use gate/NAME`,
		"reset source/apps": `unsupported kind "source": use gate/NAME`, "thaw source/apps": `unsupported kind "source": use gate/NAME`,
		"freeze source/apps --reason x": `unsupported kind "source": use gate/NAME`, "preview source/apps": `unsupported kind "source": use gate/NAME`,
		"history exception/hotfix":                   `unsupported kind "exception": use gate/NAME or source/NAME`,
		"history source/apps production":             "name gates or gatedsources, not both",
		"approve kustomization/apps":                 `unsupported kind "kustomization": use exception/NAME, gate/NAME or source/NAME`,
		"approve hotfix --generation 1":              "--generation is for exception/NAME",
		"approve source/apps --request x":            "--request is for gate/NAME",
		"approve exception/hotfix --revision main":   "--revision is for source/NAME",
		"approve gate/production --reason x":         "--reason is for source/NAME",
		"approve gate/production -o json":            "--output is for exception/NAME and source/NAME",
		"approve":                                    "name exception/NAME, gate/NAME or source/NAME",
		"approve production":                         "no cluster: ",
		"open gate.gating.toolkit.fluxcd.io/staging": "no cluster: ",
	} {
		var out, errOut strings.Builder
		code := run(strings.Fields(line+server), nil, &out, &errOut, now)
		if code != term.ExitError || !strings.HasPrefix(errOut.String(), "error: "+want) {
			t.Errorf("%s: exit %d: %s", line, code, errOut.String())
		}
	}
}
