package gate_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// rule returns a rule that requires a number of approvals, nil for a negative one.
func rule(required int32) *v1alpha1.ApprovalRule {
	if required < 0 {
		return nil
	}
	return &v1alpha1.ApprovalRule{Required: required}
}

// TestApprovalRequirements has each rule absent, 0 or above for open requests, exceptions that can open the Gate, exceptions that only
// close it, and passes.
func TestApprovalRequirements(t *testing.T) {
	for _, tc := range []struct{ openRequests, exceptions, wantRequest, wantException int32 }{
		{-1, -1, 0, 0}, {-1, 0, 0, 0}, {-1, 2, 0, 2},
		{0, -1, 0, 0}, {0, 0, 0, 0}, {0, 2, 0, 2},
		{1, -1, 1, 1}, {1, 0, 1, 0}, {1, 2, 1, 2},
	} {
		t.Run(fmt.Sprintf("%d and %d", tc.openRequests, tc.exceptions), func(t *testing.T) {
			approvals := &v1alpha1.GateApprovals{OpenRequests: rule(tc.openRequests), Exceptions: rule(tc.exceptions)}
			if tc.openRequests < 0 && tc.exceptions < 0 {
				approvals = nil
			}
			needs := func(s *v1alpha1.GateSpec) { s.Approvals = approvals }
			g := production(closed(needs))
			for _, edit := range []edit{opensIn(midday), byDefault(isOpened), byDefault(isClosed), all(closesIn(midday), byDefault(isClosed)), all(opensIn(midday), closesIn(weekly("a", "01:00", "02:00")))} {
				e := exception(edit, written("mallory"))
				if n := gate.Missing(g, e); n != int(tc.wantException) {
					t.Errorf("%d approvals of an exception are missing, want %d: %+v", n, tc.wantException, e.Spec)
				}
				if reason := gate.DecideException(e, g, []*v1alpha1.GateException{e}, noon).Reason; (reason == v1alpha1.WaitingApprovalReason) != (tc.wantException > 0) {
					t.Errorf("an exception has the reason %s: %+v", reason, e.Spec)
				}
			}
			for _, edit := range []edit{closesIn(midday), all(closesIn(midday), lead(time.Hour))} {
				e := exception(edit, written("mallory"))
				if d := gate.Decide(production(opened(needs)), noon, e); gate.Missing(g, e) != 0 || d.State != isClosed {
					t.Errorf("an exception that only closes does not count: %s", d.Message)
				}
			}
			asked := production(closed(needs, window(time.Hour)))
			if r := asks(asked, "mallory", stamp(noon), noon); r.Err != nil || r.Waits != int(tc.wantRequest) {
				t.Errorf("open request %+v, want it to wait for %d", r, tc.wantRequest)
			}
			if d := gate.Decide(asked, noon); (d.State == isOpened) != (tc.wantRequest == 0) {
				t.Errorf("after an open request: %s", d.Message)
			}
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.OpenedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.DefaultReason}}
			g.Status.LastTransition = &v1alpha1.Transition{State: isClosed, Reason: v1alpha1.DefaultReason}
			if why := gate.PassBarred(g, noon); (why != "") != (tc.wantRequest > 0) {
				t.Errorf("a pass is barred: %q", why)
			}
		})
	}
}

// TestUnapprovedClosingExceptionOpensNothing adds one to the exceptions of a Gate, some of which are approved, and some of
// which are too many.
func TestUnapprovedClosingExceptionOpensNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := asking(drawGate(t), rapid.Int32Range(0, 1).Draw(t, "required"))
		others := drawExceptions(t)
		for range rapid.SampledFrom([]int{0, 0, v1alpha1.MaxEffectiveExceptions - 1}).Draw(t, "more") {
			e := others[len(others)-1].DeepCopy()
			e.Name += "x"
			others = append(others, e)
		}
		for _, e := range others {
			written("mallory")(e)
			if rapid.IntRange(0, 2).Draw(t, e.Name+" is approved") > 0 {
				e.Status.Approvals = []v1alpha1.Approval{{ApprovedBy: "alice", Generation: e.Generation}}
			}
		}
		from := drawHour(t, "from")
		added := exception(called("added"), written("mallory"), closesIn(drawPeriod(t, "close")), valid(hourly(from), hourly(from+rapid.IntRange(1, 24).Draw(t, "lasts"))))
		added.CreationTimestamp = metav1.NewTime(utc(rapid.SampledFrom([]string{"2026-10-31T00:00:00Z", "2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z"}).Draw(t, "created")))
		if rapid.Bool().Draw(t, "leads") {
			lead(2 * time.Hour)(added)
		}
		if rapid.IntRange(0, 3).Draw(t, "is invalid") == 0 {
			added.Spec.ClosePeriods[0].End = nil
		}
		for minute := 15; minute < 48*60; minute += 30 {
			now := utc(hourly(0)).Add(time.Duration(minute) * time.Minute)
			with, without := gate.Decide(g, now, append(slices.Clone(others), added)...), gate.Decide(g, now, others...)
			if with.State == isOpened && without.State == isClosed {
				t.Fatalf("at %s: %s; without it: %s", now, with.Message, without.Message)
			}
		}
	})
}
