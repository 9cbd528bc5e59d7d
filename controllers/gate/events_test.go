package gate

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
	"github.com/fluxcd/gating-controller/internal/summary"
)

func TestTokenOfRequestIsStable(t *testing.T) {
	g := &v1alpha1.Gate{}
	g.UID = "uid"
	request := ledger.Request{Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "yesterday", Err: errors.New("no")}
	same := requestToken(g, request)
	equal(t, requestToken(g.DeepCopy(), request), same)
	tokens := map[string]bool{same: true}
	for _, other := range []ledger.Request{{Annotation: v1alpha1.CloseRequestedAtAnnotation, Value: "yesterday"}, {Annotation: v1alpha1.OpenRequestedAtAnnotation, Value: "today"}} {
		tokens[requestToken(g, other)] = true
	}
	g.UID = "another"
	tokens[requestToken(g, request)] = true
	if len(tokens) != 4 {
		t.Errorf("tokens %v", tokens)
	}
}

// The targets have an event each, up to a limit.
func TestTransitionSummaryOfManyTargets(t *testing.T) {
	const many = 105
	for name, tc := range map[string]struct {
		state v1alpha1.State
		mode  v1alpha1.Mode
		sums  summary.Sums
		want  string
	}{
		"closed":                {v1alpha1.StateClosed, v1alpha1.ModeEnforce, summary.Sums{Total: many, Held: many - 1}, "Normal GateClosed 104 of 105 targets held"},
		"opened":                {v1alpha1.StateOpened, v1alpha1.ModeEnforce, summary.Sums{Total: many, Held: 2}, "Normal GateOpened 103 targets released"},
		"closed, in mode Audit": {v1alpha1.StateClosed, v1alpha1.ModeAudit, summary.Sums{Total: many, WouldHold: many}, "Normal WouldHold 105 of 105 targets would be held. The gate has mode Audit and holds nothing."},
		"opened, in mode Audit": {v1alpha1.StateOpened, v1alpha1.ModeAudit, summary.Sums{Total: many}, ""},
		"few targets":           {v1alpha1.StateClosed, v1alpha1.ModeEnforce, summary.Sums{Total: 100, Held: 100}, ""},
	} {
		fake := record.NewFakeRecorder(1)
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Mode: tc.mode}}
		g.Status.LastTransition = &v1alpha1.Transition{At: metav1.NewTime(start), State: tc.state}
		recorder{EventRecorder: fake}.summary(g, tc.sums, start)
		got := ""
		select {
		case got = <-fake.Events:
		default:
		}
		if got, _, _ = strings.Cut(got, "map["); strings.TrimSpace(got) != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestOverlayEventsFollowChangesOfState(t *testing.T) {
	until := metav1.NewTime(start.Add(hours(1)))
	apps := []v1alpha1.OverlayTarget{{Kind: "Kustomization", Name: "apps"}}
	overlay := func(state v1alpha1.State, targets []v1alpha1.OverlayTarget) v1alpha1.Overlay {
		return v1alpha1.Overlay{Exception: "hotfix", State: state, Until: &until, Targets: targets}
	}
	extended := overlay(v1alpha1.StateOpened, apps)
	extended.Until = &metav1.Time{Time: start.Add(hours(2))}
	requested := v1alpha1.Overlay{RequestedBy: "alice", State: v1alpha1.StateClosed, Targets: apps}
	g, fake := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed}), record.NewFakeRecorder(10)
	for _, step := range []struct {
		after []v1alpha1.Overlay
		want  []string
	}{
		{[]v1alpha1.Overlay{overlay("", apps)}, nil},
		{[]v1alpha1.Overlay{overlay(v1alpha1.StateOpened, apps)}, []string{"Normal OverlayStarted Kustomization/apps opened by exception 'hotfix' until 2026-11-23T13:00:00Z"}},
		{[]v1alpha1.Overlay{extended}, nil},
		{[]v1alpha1.Overlay{overlay(v1alpha1.StateClosed, apps)}, []string{
			"Normal OverlayEnded Kustomization/apps no longer opened by exception 'hotfix'", "Normal OverlayStarted Kustomization/apps closed by exception 'hotfix' until 2026-11-23T13:00:00Z",
		}},
		{nil, []string{"Normal OverlayEnded Kustomization/apps no longer closed by exception 'hotfix'"}},
		{[]v1alpha1.Overlay{requested}, []string{"Normal OverlayStarted Kustomization/apps closed by a request of alice"}},
	} {
		before := g.DeepCopy()
		g.Status.Overlays = step.after
		recorder{EventRecorder: fake}.overlays(t.Context(), before, g, start)
		var got []string
		for len(fake.Events) > 0 {
			text, _, _ := strings.Cut(<-fake.Events, "map[")
			got = append(got, strings.TrimSpace(text))
		}
		equal(t, got, step.want)
	}
}

func TestAmbiguousSchedulesAreReportedOncePerGeneration(t *testing.T) {
	g := newGate(v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	fake := record.NewFakeRecorder(10)
	for _, step := range []struct {
		schedule string
		edited   bool
		want     string
	}{
		{"0 2 * * SUN", true, ""},
		{"0 2 1-7 * SUN", true, "Warning AmbiguousSchedule open period 'patching': '0 2 1-7 * SUN' starts on each day whose day of month is 1-7 OR "},
		{"0 2 1-7 * SUN", false, ""},
		{"0 2 13 * SUN", true, "Warning AmbiguousSchedule open period 'patching': '0 2 13 * SUN' starts on each day whose day of month is 13 OR "},
	} {
		g.Spec.OpenPeriods = []v1alpha1.Period{{Name: "patching", Schedule: &step.schedule, Duration: duration(hours(1))}}
		if step.edited {
			g.Generation++
		}
		d := decision{Resolution: gate.NewSnapshot(g, nil).Resolve(gate.Observed{}, start)}
		d.IsNew, d.Changed = true, false
		p := &gatePass{Reconciler: &Reconciler{EventRecorder: fake, Selector: &view.Selector{}, GateMetrics: &events.Metrics{}}, before: g.DeepCopy(), decision: d}
		g.Status = d.Status(nil)
		for range 2 {
			p.notifyDecision(t.Context(), g)
		}
		got := ""
		if len(fake.Events) > 0 {
			got = <-fake.Events
		}
		if !strings.HasPrefix(got, step.want) || (got == "") != (step.want == "") || len(fake.Events) > 0 {
			t.Errorf("%s: %q and %d more events, want %q", step.schedule, got, len(fake.Events), step.want)
		}
	}
}
