package cli

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// TestModeAuditPage runs docs/guides/try-a-gate.md.
func TestModeAuditPage(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	for _, name := range []string{"apps", "infra"} {
		obj := w.Kustomization(name)
		obj.SetLabels(map[string]string{"team": "platform"})
		w.Create(obj)
	}
	w.follows(folder, w.blocksOf("guides/try-a-gate.md")...)
}

func TestCloseWarnsAboutModeAudit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"apps", "both", "none"} {
		w.Create(w.Kustomization(name))
	}
	targets := func(names ...string) (refs []v1alpha1.TargetReference) {
		for _, name := range names {
			refs = append(refs, v1alpha1.TargetReference{Kind: "Kustomization", Name: name})
		}
		return refs
	}
	w.Gate("trial", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeAudit, Targets: targets("apps", "both")})
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: targets("both")})
	w.Decided(w.ReadGate("trial"))
	w.Decided(w.ReadGate("production"))
	warning := fmt.Sprintf("warning: %[1]s/trial: it has mode Audit, so nothing is held; to enforce: kubectl -n %[1]s patch gate/trial --type=merge", w.Namespace)

	w.expect(w.gate("close", "trial", "--for", "1h", "--wait"), 0, "trial: done, 0 of 2 targets held, 2 would be (mode Audit), 0 suspended by others, 0 failed", warning)
	w.expect(w.gate("open", "trial", "--for", "1h", "--wait"), 0, "trial: done, 0 of 2 targets held, 0 would be (mode Audit)", "")
	frozen := w.gate("freeze", "--for", "1h", "--reason", "incident 77")
	w.expect(frozen, 0, fmt.Sprintf("Not frozen, because no gate covers them:\n  Kustomization %[1]s/none\n"+
		"Not frozen, because their gates have mode Audit:\n  Kustomization %[1]s/apps\n", w.Namespace), warning)
	if strings.Contains(frozen.out, "Kustomization "+w.Namespace+"/both") {
		t.Errorf("%+v", frozen)
	}
	w.expect(w.gate("thaw"), 0, "trial: opened", "")
	w.expect(w.gate("list", "--timeline", "--days", "7"), 0, "trial (audit)   opened", "")
	w.expect(w.gate("preview", "trial", "--days", "1"), 0, "trial", "warning: "+w.Namespace+"/trial: spec.mode: the gate has mode Audit")
	w.expect(w.gate("pending", "--all"), 0, "", "Nothing waits.")
	w.expect(w.gate("why", "ks/apps", "-o", "jsonpath={.items[0].gates[0].mode}"), 0, "Audit", "")
}
