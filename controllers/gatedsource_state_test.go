package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/gatedsource"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// outcomes is what one Gate counts of a GatedSource, and what its rollout records.
type outcomes struct {
	outcome         summary.Outcome
	pending, failed bool
	phase           waves.Phase
	message         string
	// check is when the GatedSource is reconciled again without an event.
	check time.Duration
}

func TestAGatedSourceReportsItsOutcomeToEachOfItsGates(t *testing.T) {
	gate := func(name string, stand verdict.Effect) verdict.Gate {
		return verdict.Gate{Name: "shop/" + name, Effect: stand, Governs: true, Object: &v1alpha1.Gate{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "shop"}, Spec: v1alpha1.GateSpec{Release: &v1alpha1.ReleasePolicy{Waves: []v1alpha1.ReleaseWave{{Name: "first"}}}},
		}}
	}
	open, closed, undecided := gate("open", verdict.Open), gate("closed", verdict.Closed), gate("new", verdict.Undecided)
	missing := verdict.Gate{Name: "shop/missing", Effect: verdict.Missing}
	elsewhere := verdict.Gate{Name: "shop/elsewhere", Effect: verdict.OtherShard}
	for name, tc := range map[string]struct {
		gates     []verdict.Gate
		nothing   bool // no revision waits
		waits     bool
		failed    string
		want      outcomes // of the first Gate
		uncounted bool
	}{
		"closed, a revision waits":              {gates: []verdict.Gate{closed}, want: outcomes{outcome: summary.Held, phase: waves.Held}},
		"closed, nothing waits":                 {gates: []verdict.Gate{closed}, nothing: true, want: outcomes{outcome: summary.Exempt, phase: waves.Skipped}},
		"open, another one is closed":           {gates: []verdict.Gate{open, closed}, want: outcomes{phase: waves.Blocked, message: "held by shop/closed"}},
		"closed, another one is open":           {gates: []verdict.Gate{closed, open}, want: outcomes{outcome: summary.Held, phase: waves.Held}},
		"open":                                  {gates: []verdict.Gate{open}, want: outcomes{phase: waves.Progressing}},
		"open, waits for a slot":                {gates: []verdict.Gate{open}, waits: true, want: outcomes{phase: waves.Held}},
		"undecided":                             {gates: []verdict.Gate{undecided}, want: outcomes{pending: true, phase: waves.Held}},
		"closed, the status is not written":     {gates: []verdict.Gate{closed}, failed: v1alpha1.StatusWriteFailedReason, want: outcomes{outcome: summary.Held, failed: true, message: errBroken.Error()}},
		"open, the pinned source isn't written": {gates: []verdict.Gate{open}, failed: v1alpha1.WriteFailedReason, want: outcomes{failed: true, phase: waves.Progressing}},
		"closed, drift is not corrected":        {gates: []verdict.Gate{closed}, failed: v1alpha1.WriteFailedReason, want: outcomes{failed: true, message: errBroken.Error()}},
		"open, a missing one holds":             {gates: []verdict.Gate{open, missing}, want: outcomes{phase: waves.Blocked, message: "held by shop/missing", check: verdict.MissingInterval}},
		"open, nothing waits, one is missing":   {gates: []verdict.Gate{open, missing}, nothing: true, want: outcomes{phase: waves.Skipped}},
		"open, one is in another shard":         {gates: []verdict.Gate{open, elsewhere}, want: outcomes{phase: waves.Blocked, message: "held by shop/elsewhere", check: view.CacheDelay}},
		"only in another shard":                 {gates: []verdict.Gate{elsewhere}, uncounted: true, want: outcomes{check: view.CacheDelay}},
	} {
		s := &gatedsource.PromotionState{Object: &target.Object{}, After: &v1alpha1.GatedSource{}, Gates: tc.gates, Waits: tc.waits, Now: start}
		s.Object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GatedSourceKind))
		if s.Input.Gates = gatedsource.Combined(tc.gates, start); !tc.nothing {
			s.After.Status.Pending = &v1alpha1.SeenRevision{Revision: commit("b")}
		}
		if tc.failed != "" {
			_, _ = s.Failed(tc.failed, errBroken)
		}
		got := outcomes{}
		entries := s.Entries()
		if (len(entries) == 0) != tc.uncounted {
			t.Errorf("%s: %d entries", name, len(entries))
		}
		if len(entries) > 0 {
			m := s.Member(tc.gates[0])
			got = outcomes{entries[0].Outcome, entries[0].Pending, entries[0].Failure != nil, m.Phase, m.Message, 0}
		}
		if next := s.NextCheck(false); !next.IsZero() {
			got.check = next.Sub(start)
		}
		if got != tc.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tc.want)
		}
	}
}

func TestAGateInAuditModeCountsWhatItWouldHoldOfAGatedSource(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	g := f.Gate("nights", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Mode: v1alpha1.ModeAudit, Targets: []v1alpha1.TargetReference{allGatedSources}})
	f.looks(g)
	f.close(g, f.clock.Now())
	f.looks(g)
	if s := g.Status.Targets; s == nil || s.Total != 1 || s.WouldHold != 1 || s.Held != 0 {
		t.Errorf("the gate counts %+v", s)
	}
	if got := f.events.take("GatedSource/apps"); !strings.Contains(strings.Join(got, "\n"), v1alpha1.WouldHoldReason) {
		t.Errorf("no event: %q", got)
	}
	f.approves("alice", commit("a"))
	f.looks(g)
	f.isAt("a", "Approved True")
	if s := g.Status.Targets; s.WouldHold != 0 || s.Exempt != 1 {
		t.Errorf("nothing waits, and yet the gate counts %+v", s)
	}
}

func TestAGatedSourceWaitsUntilItsSourcesAreRead(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	f.Targets = sourcesNotRead{f.Targets}
	result, err := f.on().gatedSources.Reconcile(f.Context(), f.request())
	if f.Must(err); result.RequeueAfter != view.CacheDelay {
		t.Errorf("it is requeued after %s", result.RequeueAfter)
	}
	if f.Read(f.g); len(f.g.Status.Conditions) > 0 {
		t.Errorf("it has the conditions %+v", f.g.Status.Conditions)
	}
}

// sourcesNotRead is a cache that has no source yet.
type sourcesNotRead struct{ view.TargetReader }

// Get implements TargetReader.
func (c sourcesNotRead) Get(ctx context.Context, key target.Key) (*target.Object, error) {
	if key.Kind == "GitRepository" {
		return nil, view.ErrNotRead
	}
	return c.TargetReader.Get(ctx, key)
}

func TestAGatedSourceThatCannotBeWrittenIsAFailureOfItsGate(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	g := f.Gate("days", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{allGatedSources}})
	f.looks(g)
	f.push("b")
	f.writes.before = func(write string) error {
		if strings.Contains(write, "GitRepository/apps-gated") {
			return errBroken
		}
		return nil
	}
	if err := f.tries(); !errors.Is(err, errBroken) {
		t.Errorf("the error is %v", err)
	}
	_, _ = f.try(g)
	if failures := g.Status.TargetFailures(); len(failures) != 1 || failures[0].Kind != v1alpha1.GatedSourceKind || failures[0].Reason != v1alpha1.WriteFailedReason {
		t.Errorf("failures: %+v", failures)
	}
}
