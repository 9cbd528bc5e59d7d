package see

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/explain"
	"github.com/fluxcd/gating-controller/internal/tz"
)

// now is a Saturday.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// shown returns the output of status for a screen, with the name of its Gate set to flux-system/production.
func shown(t *testing.T, sc *screen) string {
	t.Helper()
	var out bytes.Buffer
	oslo, err := tz.Load("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	sc.t, sc.now = &term.Terminal{IOStreams: genericiooptions.IOStreams{Out: &out}}, now.In(oslo)
	sc.gate.Namespace, sc.gate.Name = "flux-system", "production"
	if err := sc.print(term.NewOutput(&cobra.Command{})); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// is returns a Gate with the condition Opened.
func is(status metav1.ConditionStatus, reason, message string) *v1alpha1.Gate {
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed}}
	g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: status, Reason: reason, Message: message}}
	return g
}

func TestStatusPrintsTheConditionOnlyIfNoSectionDoes(t *testing.T) {
	for _, tc := range []struct{ reason, message, want string }{
		{v1alpha1.OpenRequestedReason, "Gate open requested at 2026-11-21T11:00:00Z for 27h0m28.00784s by alice", ""},
		{v1alpha1.DefaultReason, "Gate closed by default, exception 'hotfix' is in force until 2026-11-22T00:00:00Z, exception 'hotfix' is invalid", "Exception hotfix is invalid."},
		{v1alpha1.InvalidSpecReason, "Gate stays closed, its spec is invalid: spec.timeZone", "Gate stays closed, its spec is invalid: spec.timeZone."},
		{v1alpha1.DependencyNotReadyReason, "Gate stays closed until staging is ready", "Gate stays closed until staging is ready."},
		{v1alpha1.TimeUnknownReason, "Gate stays closed, the API server does not return its time", "Gate stays closed, the API server does not return its time."},
	} {
		lines := strings.Split(shown(t, &screen{gate: is(metav1.ConditionFalse, tc.reason, tc.message)}), "\n")
		if lines[1] != tc.want {
			t.Errorf("%s: %q, want %q", tc.reason, lines[1], tc.want)
		}
	}
}

func TestTableHeadersHaveZone(t *testing.T) {
	g := is(metav1.ConditionTrue, v1alpha1.DefaultReason, "")
	g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(now.Add(-time.Hour)), State: v1alpha1.StateOpened}
	start, end := "20:00", "21:00"
	g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "w", Start: &start, End: &end}}
	got := shown(t, &screen{gate: g})
	for _, want := range []string{"Gate flux-system/production is open since 2026-11-21 12:00 (1h ago): default.\n", "\nAT (CET)                    STATE "} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %q", got, want)
		}
	}
}

func TestStatusCountsOverlaidTargets(t *testing.T) {
	g := is(metav1.ConditionFalse, v1alpha1.DefaultReason, "")
	g.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: 40, Overlaid: 2}}
	g.Status.Overlays = []v1alpha1.Overlay{{Exception: "hotfix", State: v1alpha1.StateOpened}}
	if got, want := shown(t, &screen{gate: g}), "Gate flux-system/production is closed (2 of 40 open): default.\n"; !strings.HasPrefix(got, want) {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if row := gateRow(&term.Terminal{}, g, now, false, false); row[1] != "closed (2 of 40 open)" {
		t.Errorf("got the row %q", row)
	}
}

func TestNextTransitionIsFromStatusWithoutExceptions(t *testing.T) {
	g := is(metav1.ConditionFalse, v1alpha1.DefaultReason, "")
	start, end := "20:00", "21:00"
	g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "w", Start: &start, End: &end}}
	g.Status.NextTransition = &v1alpha1.Transition{At: metav1.NewTime(now.Add(2 * time.Hour)), State: v1alpha1.StateOpened, Reason: v1alpha1.ExceptionAppliesReason, Exception: "hotfix"}
	got := shown(t, &screen{gate: g, unread: []string{"exceptions"}})
	want := "2026-11-21 15:00 (in 2h)   opened   exception hotfix\nLater transitions are unknown, because the exceptions of the gate could not be read.\n"
	if !strings.Contains(got, want) || strings.Contains(got, "open period w") {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestTargetListNamesSuspender(t *testing.T) {
	sc := &screen{gate: is(metav1.ConditionTrue, "", ""), targets: []targetLine{{state: explain.Suspended, owners: []explain.Owner{{Manager: "flux"}}}}}
	if got := shown(t, sc); !strings.Contains(got, "suspended   -          suspended by flux") {
		t.Error(got)
	}
}

func TestDescribeIsStatus(t *testing.T) {
	if cmd := NewStatusCommand((&kube.Factory{Terminal: &term.Terminal{}})); !slices.Contains(cmd.Aliases, "describe") {
		t.Error(cmd.Aliases)
	}
}

func TestRemediesOfFreeObjectsHoldThem(t *testing.T) {
	for state, want := range map[explain.State]string{explain.Free: "\nTo hold it:\n", explain.Held: "\nTo change that:\n"} {
		var out bytes.Buffer
		printRemedies((&kube.Factory{Terminal: &term.Terminal{IOStreams: genericiooptions.IOStreams{Out: &out}}}).Terminal, &explain.Explanation{State: state, Remedies: []explain.Remedy{{Command: "c", Effect: "e"}}})
		if !strings.HasPrefix(out.String(), want) {
			t.Errorf("%s: %q", state, out.String())
		}
	}
}
