package cli

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestOneParserReadsTheNamesOfAllCommands(t *testing.T) {
	all := []nameKind{exceptionName, gateName, sourceName}
	for arg, want := range map[string]string{
		"production": "Gate here/production", "gate/production": "Gate here/production", "shop/production": "Gate shop/production",
		"gate/shop/production": "Gate shop/production", "gates/production": "Gate here/production", "Gate/production": "Gate here/production",
		"gate.gating.toolkit.fluxcd.io/production": "Gate here/production", "gate/gate/production": "Gate gate/production",
		"exception/hotfix": "GateException here/hotfix", "gateexception/hotfix": "GateException here/hotfix", "exception/shop/hotfix": "GateException shop/hotfix",
		"source/apps": "GatedSource here/apps", "gatedsources/apps": "GatedSource here/apps",
		"receiver/ci": "Gate receiver/ci", "gatereceiver/ci": `unsupported kind "gatereceiver": use exception/NAME, gate/NAME or source/NAME`,
		"kustomization/apps": `unsupported kind "kustomization": use exception/NAME, gate/NAME or source/NAME`,
		"widget/shop/apps":   `unsupported kind "widget": use exception/NAME, gate/NAME or source/NAME`,
		"gate/":              `"gate/" is not a name: use NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME`,
		"a/b/c/d":            `"a/b/c/d" is not a name: use NAME, NAMESPACE/NAME, KIND/NAME or KIND/NAMESPACE/NAME`,
	} {
		kind, key, err := parseName(arg, "here", all...)
		got := kind.kind + " " + key.String()
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", arg, got, want)
		}
	}
}

// Without a cluster, an argument that a command reads leads to an error about the cluster.
func TestEveryCommandReadsNamesAlike(t *testing.T) {
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
		if code != exitError || !strings.HasPrefix(errOut.String(), "error: "+want) {
			t.Errorf("%s: exit %d: %s", line, code, errOut.String())
		}
	}
}
