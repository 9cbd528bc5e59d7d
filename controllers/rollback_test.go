package controllers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

// rollback requests a rollback of the GatedSource, as config/policies stamps it.
func (f *following) rollback(letter string, gates ...string) {
	f.Helper()
	f.Read(f.g)
	f.Annotate(f.g, v1alpha1.RollbackRequestedAtAnnotation, promotion.FormatRollback(f.g, commit(letter), f.FakeClock.Now()),
		v1alpha1.RollbackRequestedByAnnotation, "alice", v1alpha1.RollbackReasonAnnotation, "crashes", v1alpha1.RollbackGatesAnnotation, strings.Join(gates, ","))
}

// frozen returns a world in which commits a and b were promoted, and a Gate with the spec has closed since.
func frozen(t *testing.T, spec v1alpha1.GatedSourceSpec, gate v1alpha1.GateSpec) (*following, *v1alpha1.Gate) {
	t.Helper()
	f := follow(t, spec)
	for _, letter := range []string{"a", "b"} {
		f.push(letter)
		f.looks()
		if spec.Approvals != nil {
			f.approves("alice", commit(letter))
			f.looks()
		}
		f.isAt(letter)
	}
	gate.Default, gate.Targets = v1alpha1.StateClosed, []v1alpha1.TargetReference{allGatedSources}
	g := f.Gate("nights", gate)
	f.looks(g)
	f.In(time.Minute)
	f.Events.Take("GatedSource/apps")
	return f, g
}

func TestRollbackDuringFreeze(t *testing.T) {
	t.Parallel()
	f, g := frozen(t, v1alpha1.GatedSourceSpec{}, v1alpha1.GateSpec{})
	equal(t, f.g.Status.HeldBy, []string{key(g)})
	f.rollback("a", key(g))
	f.Writes.Take("")
	f.looks()
	f.isAt("a", "Approved True RolledBack")
	wrote := f.Writes.Take("")
	if len(wrote) != 3 || !strings.Contains(wrote[1], "GitRepository") {
		t.Errorf("the decision is not in the status before the pinned source is written: %q", wrote)
	}
	want := "Normal GatedSource/apps RevisionPromoted: Promoted '" + commit("a") + "' from '" + commit("b") + "' (RolledBack), requested by alice: crashes"
	if got := f.Events.Take("GatedSource/apps"); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.Open(g, f.FakeClock.Now())
	f.looks(g)
	f.isAt("a", "Approved True RolledBack")
	f.push("c")
	f.looks(g)
	f.isAt("c", "Approved True UpToDate")
}

func TestRollbackIsRefusedInSameCasesAsPass(t *testing.T) {
	for name, tc := range map[string]struct {
		gate  v1alpha1.GateSpec
		gates func(g *v1alpha1.Gate) []string
		// then is called after the request.
		then    func(f *following, g *v1alpha1.Gate)
		refusal string
	}{
		"gates are listed":     {},
		"another gate":         {gates: func(*v1alpha1.Gate) []string { return []string{"shop/other"} }, refusal: "holds it as well, and is not in rollback.gate.fluxcd.io/gates"},
		"no list":              {gates: func(*v1alpha1.Gate) []string { return nil }, refusal: "the annotation rollback.gate.fluxcd.io/gates is missing"},
		"all gates":            {gates: func(*v1alpha1.Gate) []string { return []string{"*"} }},
		"override: Deny":       {gate: v1alpha1.GateSpec{ClosePeriods: []v1alpha1.ClosePeriod{hardFreeze(-hours(1), hours(1))}}, refusal: "permits no pass: its close period 'freeze' has override: Deny"},
		"approvals of a gate":  {gate: v1alpha1.GateSpec{Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}}, refusal: "it requires approval of open requests"},
		"another gate closes":  {then: func(f *following, _ *v1alpha1.Gate) { f.Reconcile(f.ClosedGate("freeze", allGatedSources)) }, refusal: "freeze' holds it as well"},
		"an audit gate closes": {then: func(f *following, _ *v1alpha1.Gate) { f.Reconcile(f.auditGate("audit", allGatedSources)) }},
		"a suspended gate":     {then: func(f *following, g *v1alpha1.Gate) { f.Edit(g, func() { g.Spec.Suspend = true }) }, refusal: "is suspended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, g := frozen(t, v1alpha1.GatedSourceSpec{}, tc.gate)
			list := []string{key(g)}
			if tc.gates != nil {
				list = tc.gates(g)
			}
			f.rollback("a", list...)
			if tc.then != nil {
				tc.then(f, g)
			}
			f.looks()
			if tc.refusal == "" {
				f.isAt("a", "Approved True RolledBack")
				return
			}
			f.isAt("b")
			events := f.Events.Take("GatedSource/apps RollbackRefused")
			if r := f.g.Status.Rollback; r == nil || !strings.Contains(r.Refused, tc.refusal) || len(events) != 1 || !strings.Contains(events[0], tc.refusal) {
				t.Errorf("want %q, got %+v, %q", tc.refusal, r, events)
			}
		})
	}
}

func TestCrashAfterAnyWriteOfRollbackIsRepaired(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		for n := range enough {
			f, g := frozen(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}}, v1alpha1.GateSpec{})
			f.rollback("a", key(g))
			if f.Writes.Before = crashing(n); !answered {
				f.Writes.Before, f.Writes.After = nil, crashing(n)
			}
			err := f.tries()
			f.Writes.Reset()
			f.ResetState()
			if f.Read(f.g); f.g.Status.Rollback != nil { // Flux removes the request
				f.Annotate(f.g, v1alpha1.RollbackRequestedAtAnnotation, "")
			}
			for range 2 {
				f.looks()
				f.isAt("a", "Approved False WaitingApproval")
			}
			if got := f.g.Status.Promotions; len(got) != 3 || got[0].Revision != commit("a") || got[0].Reason != v1alpha1.RolledBackReason || got[0].RequestedBy != "alice" {
				t.Errorf("promotions: %+v", got)
			}
			if t.Failed() {
				t.Fatalf("after a crash at write %d: %v", n, err)
			}
			if err == nil && n > 2 {
				break
			}
		}
	}
}
