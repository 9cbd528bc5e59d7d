package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const (
	kindGate      = "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: Gate\n"
	kindException = "apiVersion: gating.toolkit.fluxcd.io/v1alpha1\nkind: GateException\n"
	lunchSpec     = "spec: {gateRef: {name: plain}, timeZone: UTC, validFrom: \"2026-11-24T10:00:00Z\", validUntil: \"2026-11-24T11:00:00Z\", closePeriods: [{name: all, start: \"00:00\", end: \"24:00\"}]}\n"
)

func TestDiffComparesManifestsWithCluster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Gate("plain", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Gate("other", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.lunch("lunch", "plain")
	const (
		plain = kindGate + "metadata: {name: plain}\nspec: {default: opened}\n---\n"
		lunch = kindException + "metadata: {name: lunch}\n" + lunchSpec + "---\n"
		noon  = " 2026-11-24T10:00:00Z 2026-11-24T11:00:00Z "
		day   = " 2026-11-24T00:00:00Z 2026-11-25T00:00:00Z "
		same  = "No gate changes its state from 2026-11-24T00:00:00Z until 2026-11-25T00:00:00Z."
	)
	some := strings.NewReplacer("name: lunch", "name: apps", "closePeriods", "targets: [{kind: Kustomization, name: apps}], closePeriods", "T10", "T12", "T11", "T13").Replace(lunch)
	for name, tc := range map[string]struct {
		manifests, flags string
		code             int
		want             string
	}{
		"no change":                         {plain + lunch, "", 0, same},
		"only the exception":                {lunch, "", 0, same},
		"only the gate":                     {plain, "", 0, same},
		"an exception outside the selector": {plain, "--prune -l team=none", 0, same},
		"an exception that is pruned":       {plain + strings.ReplaceAll(plain, "plain", "other"), "--prune", 1, "flux-system/plain" + noon + "closed opened default, was exception lunch"},
		"a gate that is pruned":             {plain + lunch, "--prune", 1, "flux-system/other" + day + "gate no gate -"},
		"a new gate":                        {strings.ReplaceAll(plain, "plain", "new"), "", 1, "flux-system/new" + day + "no gate new gate -"},
		"a default that changes":            {strings.ReplaceAll(plain, "opened", "closed"), "", 1, "flux-system/plain 2026-11-24T00:00:00Z 2026-11-24T10:00:00Z opened closed default, was default flux-system/plain 2026-11-24T11:00:00Z 2026-11-25T00:00:00Z opened closed default, was default"},
		"an exception for some targets":     {some, "", 1, "flux-system/plain 2026-11-24T12:00:00Z 2026-11-24T13:00:00Z opened closed only Kustomization/apps: exception apps, was default"},
		"an exception at another time":      {strings.ReplaceAll(lunch, "T11:", "T12:"), "", 1, "flux-system/plain 2026-11-24T11:00:00Z 2026-11-24T12:00:00Z opened closed exception lunch, was default"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "gates.yaml")
			w.Must(os.WriteFile(file, []byte(tc.manifests), 0o600))
			got := w.gate(append(strings.Fields("diff --from 2026-11-24T00:00:00Z --days 1 -f "+file), strings.Fields(tc.flags)...)...)
			printed := strings.TrimSpace(got.out)
			if tc.want != same {
				printed = w.rows(got.out)
			}
			if printed != tc.want || got.code != tc.code || got.errOut != "" {
				t.Errorf("%+v\nwant %s", got, tc.want)
			}
		})
	}
}

func TestDiffHasRequestOnBothSides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ClosedGate("production")
	if got := w.gate("open", "production", "--for", "4d"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	folder := t.TempDir()
	for _, state := range []string{"opened", "closed"} {
		w.Must(os.WriteFile(filepath.Join(folder, state+".yaml"), []byte(kindGate+"metadata: {name: production}\nspec: {default: "+state+"}\n"), 0o600))
	}
	for _, flags := range []string{"", "--prune"} {
		diff := func(state, days string) output {
			return w.gate(strings.Fields("diff -f " + filepath.Join(folder, state+".yaml") + " --days " + days + " " + flags)...)
		}
		for _, state := range []string{"opened", "closed"} {
			if got := diff(state, "1"); got.code != 0 || !strings.HasPrefix(got.out, "No gate changes its state ") {
				t.Errorf("%s while the request is in force: %+v", state, got)
			}
		}
		if got := diff("opened", "5"); got.code != 1 || strings.Count(got.out, "closed   opened   default, was default\n") != 1 {
			t.Errorf("after the request: %+v", got)
		}
	}
}

func TestDiffAndCheckWarnAboutWideSelector(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 30 {
		w.Create(w.Kustomization(fmt.Sprintf("apps-%d", i)))
	}
	one := []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps-0"}}
	w.Decided(w.Gate("narrow", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: one}))
	w.Eventually("the target is counted", func() error {
		if counts := w.ReadGate("narrow").Status.Targets; counts == nil || counts.Total != 1 {
			return fmt.Errorf("%+v", counts)
		}
		return nil
	})
	const wide = "spec.targets[0]: selects 30 objects, and the gate governs 30 targets instead of 1: narrow the selector"
	file := filepath.Join(t.TempDir(), "gates.yaml")
	w.Must(os.WriteFile(file, []byte(kindGate+"metadata: {name: narrow}\nspec: {default: opened, targets: [{kind: Kustomization, name: '*'}]}\n"), 0o600))
	w.expect(w.gate("diff", "-f", file), 0, "No gate changes its state", wide)
	w.hasExactly("sees-gates-alone", rule{"get,list", "gates.gating.toolkit.fluxcd.io"}, rule{"list", "gateexceptions.gating.toolkit.fluxcd.io"})
	w.expect(w.as("sees-gates-alone").gate("diff", "-f", file), 0, "", "the objects that new selectors match are not counted")
	g := w.ReadGate("narrow")
	g.Spec.Suspend, g.Spec.Targets[0].Name = true, v1alpha1.AnyName
	w.Must(w.Client.Update(w.Context(), g))
	if got, want := w.gate("check"), "Gate "+w.Namespace+"/narrow: spec.targets[0] selects 30 objects, and the gate governs 30 targets instead of 1\n"; !strings.Contains(got.out, want) {
		t.Errorf("%+v, want %s", got, want)
	}
}
