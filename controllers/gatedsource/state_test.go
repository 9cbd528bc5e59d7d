package gatedsource

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
	"github.com/fluxcd/gating-controller/internal/waves"
)

// errBroken is the error of a failed write, and start is the time of these tests.
var (
	errBroken = errors.New("the connection is broken")
	start     = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
)

// outcomes has the outcome of a GatedSource for one Gate, and its state in the rollout of that Gate.
type outcomes struct {
	outcome         summary.Outcome
	pending, failed bool
	phase           waves.Phase
	message         string
	// check is when the GatedSource is reconciled again without an event.
	check time.Duration
}

func TestGatedSourceReportsOutcomeToEachGate(t *testing.T) {
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
		alone     bool // no shards
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
		"open, one is in another shard":         {gates: []verdict.Gate{open, elsewhere}, want: outcomes{phase: waves.Blocked, message: "held by shop/elsewhere", check: shardInterval}},
		"only in another shard":                 {gates: []verdict.Gate{elsewhere}, uncounted: true, want: outcomes{check: shardInterval}},
		"not in the cache yet":                  {gates: []verdict.Gate{elsewhere}, alone: true, uncounted: true, want: outcomes{check: view.CacheDelay}},
	} {
		s := &promotionState{object: &target.Object{}, after: &v1alpha1.GatedSource{}, gates: tc.gates, waits: tc.waits, now: start}
		s.object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.GatedSourceKind))
		if s.input.Gates = combined(tc.gates, start); !tc.nothing {
			s.after.Status.Pending = &v1alpha1.SeenRevision{Revision: "main@sha1:b"}
		}
		if tc.failed != "" {
			_, _ = s.failed(tc.failed, errBroken)
		}
		got := outcomes{}
		entries := s.entries()
		if (len(entries) == 0) != tc.uncounted {
			t.Errorf("%s: %d entries", name, len(entries))
		}
		if len(entries) > 0 {
			m := s.member(tc.gates[0])
			got = outcomes{entries[0].Outcome, entries[0].Pending, entries[0].Failure != nil, m.Phase, m.Message, 0}
		}
		sharded := !tc.alone && slices.ContainsFunc(tc.gates, func(g verdict.Gate) bool { return g.Effect == verdict.OtherShard })
		if next := s.nextCheck(sharded); !next.IsZero() {
			got.check = next.Sub(start)
		}
		if got != tc.want {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, tc.want)
		}
	}
}

func TestGatedSourceWouldBeHeldInModeAudit(t *testing.T) {
	for name, tc := range map[string]struct {
		would   verdict.Effect
		pending bool
		want    summary.Outcome
	}{
		"open":                     {verdict.Open, true, summary.Other},
		"undecided":                {verdict.Undecided, true, summary.Held}, // the previous outcome
		"closed, a revision waits": {verdict.Closed, true, summary.WouldHold},
		"closed, nothing waits":    {verdict.Closed, false, summary.Exempt},
	} {
		s := &promotionState{after: &v1alpha1.GatedSource{}}
		if tc.pending {
			s.after.Status.Pending = &v1alpha1.SeenRevision{Revision: "main@sha1:b"}
		}
		if got := s.audit(verdict.Gate{Audits: true, Would: tc.would}, summary.Held); got != tc.want {
			t.Errorf("%s: outcome %v, want %v", name, got, tc.want)
		}
	}
}
