package cli

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// scene is a namespace with Gates as in the docs: production is closed outside its open periods and holds apps, staging is open.
func (w *world) scene() {
	w.Helper()
	w.Create(w.Kustomization("apps"))
	everyNight, at, until := []v1alpha1.Period{{Name: "nights"}}, "22:00", "05:00"
	everyNight[0].Start, everyNight[0].End = &at, &until
	from, end := metav1.Now(), metav1.NewTime(metav1.Now().AddDate(0, 0, 20))
	w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, OpenPeriods: everyNight, Targets: []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}},
		ClosePeriods: []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "freeze", From: v1alpha1.NewDateTime(from.Time), Until: v1alpha1.NewDateTime(end.Time)}}},
	})
	w.Gate("staging", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	w.Decided(w.ReadGate("staging"))
	w.Decided(w.ReadGate("production"))
}

func TestListOutput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	w.shows("list")
}

func TestListOutputCanBeApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	const production, staging = "gate.gating.toolkit.fluxcd.io/production configured\n", "gate.gating.toolkit.fluxcd.io/staging configured\n"
	for command, want := range map[string]string{"list -o json": production + staging, "list -o yaml": production + staging, "status production -o json": production} {
		w.Eventually(command, func() error { // repeated in case the controller writes a status in between
			got := w.shell("kubectl gate " + command + " | kubectl apply --validate=strict -f -")
			if out := strings.ReplaceAll(got.out, "unchanged", "configured"); out != want || got.code != 0 {
				return fmt.Errorf("%+v", got)
			}
			return nil
		})
	}
}

func TestListFormats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.scene()
	for _, tc := range []struct{ args, want string }{
		{"list -o jsonpath={.kind}/{.items[*].metadata.name}", "List/production staging"},
		{"list staging -o jsonpath={.kind}/{.items[*].metadata.name}", "List/staging"},
		{"list -o name", "gate.gating.toolkit.fluxcd.io/production\ngate.gating.toolkit.fluxcd.io/staging\n"},
		{"list staging gate/staging -o name", "gate.gating.toolkit.fluxcd.io/staging\n"},
		{"list --status-selector opened=true -o name", "gate.gating.toolkit.fluxcd.io/staging\n"},
	} {
		if got := w.gate(strings.Fields(tc.args)...); got.out != tc.want || got.code != 0 {
			t.Errorf("%s: %+v, want %q", tc.args, got, tc.want)
		}
	}
}
