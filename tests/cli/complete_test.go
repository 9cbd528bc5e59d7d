package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// TestKubectlCompletesGates runs the real kubectl, which calls kubectl_complete-gate, a link to the plugin.
func TestKubectlCompletesGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.Create(w.Kustomization("other"))
	targets := []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}, {Kind: "GitRepository", Name: "*"}}
	w.Decided(w.Gate("all", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: targets}))
	elsewhere := harness.NewWorld(t, cluster)
	elsewhere.Create(elsewhere.Kustomization("far"))
	targets[0].Namespace = elsewhere.Namespace
	w.Gate("far", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: targets[:1]})
	folder := w.TempDir()
	w.Must(os.Symlink(program(), filepath.Join(folder, "kubectl_complete-gate")))
	for line, want := range map[string]string{
		"kubectl __complete gate ope":                                                  "open\tOpen Gates manually\n:4\n",
		"kubectl __complete gate open ''":                                              "all\nfar\nproduction\nstaging\n:4\n",
		"kubectl __complete gate open production all far ''":                           "staging\n:4\n",
		"kubectl __complete gate open gate/st":                                         "gate/staging\n:4\n",
		"kubectl __complete gate open ga":                                              "gate/\n:6\n",
		"kubectl __complete gate open st":                                              "staging\n:4\n",
		"kubectl __complete gate exception production ''":                              ":4\n",
		"kubectl __complete gate open -n " + w.Namespace[:7]:                           "",
		"kubectl-gate __complete list -n kube-sys":                                     "kube-system\n:4\n",
		"kubectl-gate __complete approve ''":                                           "exception/\ngate/\nsource/\n:6\n",
		"kubectl-gate __complete why ks/a":                                             "ks/apps\n:4\n",
		"kubectl-gate __complete why kustomization/a":                                  "kustomization/apps\n:4\n",
		"kubectl-gate __complete why helmrel":                                          "helmrelease/\n:6\n",
		"kubectl-gate __complete list -n kube-system ''":                               ":4\n",
		"kubectl-gate __complete open all --only ''":                                   "kustomization/apps\nkustomization/other\n:4\n",
		"kubectl-gate __complete open production --only ''":                            "kustomization/apps\n:4\n",
		"kubectl-gate __complete close all --only Kustomization/o":                     "Kustomization/other\n:4\n",
		"kubectl-gate __complete open staging all --only kustomization/apps --only ''": "kustomization/other\n:4\n",
		"kubectl-gate __complete exception far --only ''":                              "kustomization/" + elsewhere.Namespace + "/far\n:4\n",
		"kubectl-gate __complete list --kubeconfig /none list ''":                      ":4\n",
		"kubectl-gate __complete list --as mallory ''":                                 ":4\n",
		"kubectl-gate __complete list --server http://127.0.0.1 ''":                    ":4\n",
	} {
		w.Eventually(line, func() error { // completion returns no names if the cluster takes longer than a moment, and other tests keep it busy
			got := w.shell("PATH=" + folder + ":$PATH " + line + " 2>/dev/null")
			if got.code != 0 || want != "" && got.out != want || want == "" && !strings.Contains(got.out, w.Namespace+"\n") {
				return fmt.Errorf("%+v, want %q", got, want)
			}
			return nil
		})
	}
}

// TestProgramIsFluxPlugin calls the plugin as flux does.
func TestProgramIsFluxPlugin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Decided(w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened}))
	flux := filepath.Join(w.TempDir(), "flux-gate")
	w.Must(os.Symlink(program(), flux))
	w.expect(w.shell(flux+" list"), 0, "staging   opened", "")
	w.expect(w.shell(flux+" list stagin"), exitError, "", `did you mean "staging"?`)
	w.expect(w.shell(flux+" list other"), exitError, "", "flux gate list -A shows all")
	w.Eventually("names are completed", func() error {
		if got := w.shell(flux + " __complete list ''"); got.out != "staging\n:4\n" {
			return fmt.Errorf("%+v", got)
		}
		return nil
	})
}
