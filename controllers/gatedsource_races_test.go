package controllers_test

import (
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// A commit between an approval and the promotion is never promoted, not even if it arrives between two writes of the promotion.
func TestCommitDuringPromotionIsNotPromoted(t *testing.T) {
	for _, at := range []string{"patch-status GatedSource/apps", "create GitRepository/apps-gated"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
			f.looks()
			f.approves("alice", commit("a"))
			f.Writes.Before = once(at, func() error { f.push("b"); return nil })
			f.looks()
			f.isAt("a", "Approved False WaitingApproval")
		})
	}
}

// A Gate that closes after a promotion was recorded and before the pinned source is written keeps the pin in place.
func TestGateClosingDuringPromotionKeepsPin(t *testing.T) {
	t.Parallel()
	f := follow(t, v1alpha1.GatedSourceSpec{})
	g := f.Gate("days", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{allGatedSources}})
	f.looks(g)
	f.isAt("a")
	f.push("b")
	closed := false
	f.Writes.After = func(write string) error {
		if write == "patch-status GatedSource/apps" && !closed {
			closed = true
			f.Close(g, f.FakeClock.Now())
			_, err := f.Reconcilers().Gates.Reconcile(f.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
			return err
		}
		return nil
	}
	f.looks()
	f.isAt("a", "Approved False GateClosed")
	if f.g.Status.Promoting != nil {
		t.Errorf("it is promoting %+v", f.g.Status.Promoting)
	}
}

func TestCrashAfterAnyWriteOfPromotionIsRepaired(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		for n := range enough {
			f := follow(t, v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
			f.looks()
			f.approves("alice", commit("a"))
			f.push("b")
			if f.Writes.Before = crashing(n); !answered {
				f.Writes.Before, f.Writes.After = nil, crashing(n)
			}
			err := f.tries()
			f.Writes.Reset()
			f.ResetState()
			for range 2 {
				f.looks()
				f.isAt("a", "Approved False WaitingApproval")
			}
			if got := f.g.Status.Promotions; len(got) != 1 || got[0].Revision != commit("a") || got[0].Reason != v1alpha1.RevisionApprovedReason {
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

// A conflict must not cost a second slot.
func TestFailedWriteKeepsSlotOfGatedSource(t *testing.T) {
	t.Parallel()
	for _, written := range []string{"status", "pinned source"} {
		t.Run(written, func(t *testing.T) {
			t.Parallel()
			f := follow(t, v1alpha1.GatedSourceSpec{})
			g := f.Gate("paced", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{allGatedSources}, Release: &v1alpha1.ReleasePolicy{PerMinute: 1}})
			fails := 1
			f.Writes.Before = func(write string) error {
				if isPin := strings.Contains(write, "GitRepository/apps-gated"); fails > 0 && isPin == (written == "pinned source") && (isPin || f.g.Status.Promoting == nil && strings.Contains(write, "GatedSource/apps")) {
					fails--
					return errBroken
				}
				return nil
			}
			for range 3 { // the first write fails
				_, err := f.Reconcilers().Gates.Reconcile(f.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
				f.Must(err)
				_, _ = f.Reconcilers().GatedSources.Reconcile(f.Context(), f.request())
				f.Read(f.g)
			}
			if fails > 0 {
				t.Fatal("no write has failed")
			}
			f.isAt("a")
		})
	}
}
