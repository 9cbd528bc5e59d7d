package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestPassesPage(t *testing.T) {
	t.Parallel()
	w, folder := newWorld(t), t.TempDir()
	apps := w.heldApps()
	for _, b := range w.blocksOf("guides/one-pass.md") {
		if b.Language == "sh" {
			w.publish("v3")
			time.Sleep(time.Second) // the time has no fractions, and must be later than that of the last pass
		}
		w.follows(folder, b)
		if b.Language == "sh" {
			w.applies(apps, "v3")
		}
	}
	w.isHeldBy(apps, "production")
	history := w.gate("history", "production")
	if strings.Count(history.out, "pass ended: Succeeded") != 2 || !strings.Contains(history.out, "hotfix 1234") {
		t.Errorf("%+v", history)
	}
}

func TestPassRefusesIneligibleTargetsWithOneError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.heldApps()
	w.Create(w.Kustomization("free"))
	for _, tc := range []struct {
		args, want string
		code       int
	}{
		{"ks/free", "no gate holds it, so it needs no pass", 2},
		{"ks/none", "there is no Kustomization \"none\"", 2},
		{"", "name one object, as KIND/NAME", 2},
		{"ks/apps --wait --dry-run=server", "--wait cannot be combined with --dry-run", 2},
	} {
		if got := w.gate(append([]string{"pass"}, strings.Fields(tc.args)...)...); got.code != tc.code || !strings.Contains(got.errOut, tc.want) {
			t.Errorf("%q: %+v", tc.args, got)
		}
	}
	w.expect(w.gate("pass", "ks/apps", "--dry-run=server"), 0, "the API server would accept this (dry run)", "")
	w.Must(w.Merge(w.ReadGate("production"), `{"spec":{"closePeriods":[{"name":"freeze","from":%q,"until":%q,"override":"Deny"}]}}`,
		time.Now().Add(-time.Hour).UTC().Format(time.RFC3339), time.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	w.Decided(w.ReadGate("production"))
	w.expect(w.gate("pass", "ks/apps"), 3, "", "permits no pass: its close period 'freeze' has "+string("override: "+v1alpha1.OverrideDeny))
}
