package controllers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// fourEyes creates a closed Gate that requires two approvals, on an API server that stamps users.
func (w *world) fourEyes() *v1alpha1.Gate {
	w.Helper()
	w.Stamped = func(context.Context) (bool, error) { return true, nil }
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 2}} })
	w.Reconcile(g)
	return g
}

// asksToOpen writes the open request of a user, and reconciles the Gate.
func (w *world) asksToOpen(g *v1alpha1.Gate, who, reason string, more ...string) {
	w.Helper()
	w.Annotate(g, append([]string{v1alpha1.OpenRequestedAtAnnotation, w.FakeClock.Now().UTC().Format(time.RFC3339Nano),
		v1alpha1.OpenRequestedByAnnotation, who, v1alpha1.OpenReasonAnnotation, reason}, more...)...)
	w.Reconcile(g)
}

// approvedBy adds stamped approvals of the first request of a Gate.
func (w *world) approvedBy(g *v1alpha1.Gate, people ...string) {
	w.Helper()
	_, what, _ := strings.Cut(ledger.FormatRequestApproval(g, &g.Status.Requests[0], w.FakeClock.Now()), ",")
	var lines []string
	for _, who := range people {
		lines = append(lines, what+" "+who)
	}
	w.Annotate(g, v1alpha1.ApproveRequestedByAnnotation, strings.Join(lines, "\n"))
}

func TestLastApprovalOpensGateAndIsReported(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.fourEyes()
	w.asksToOpen(g, "alice", "hotfix 1234")
	w.ExpectHeld(app, g)
	stamped := w.Stamped
	w.Stamped = gatecontroller.StampedBy(cluster.Client, gatecontroller.ApprovalPolicy) // this API server has no config/policies
	w.approvedBy(g, "bob", "carol")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	const uncounted = ", the approvals in its annotations do not count, because the policy gate-approval is missing or cannot be read"
	if got := conditions.GetMessage(g, v1alpha1.OpenedCondition); !strings.HasSuffix(got, uncounted) {
		t.Errorf("the message is %q", got)
	}
	w.Stamped = stamped
	w.Events.Take("")
	w.In(time.Minute)
	w.approvedBy(g, "alice", "bob", "bob")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if got := w.Events.Take("approved by bob, waits for 1 approval: hotfix 1234"); len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), "Normal Gate/production RequestApproved") {
		t.Errorf("on the Gate and on what it holds: %q", got)
	}
	w.ResetState() // after a restart, the status has the approval by bob, although Flux has removed the annotations
	w.In(2 * time.Minute)
	w.approvedBy(g, "carol")
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	if last := g.Status.History[0]; last.State != v1alpha1.StateOpened || last.RequestedBy != "alice" || last.ApprovedBy != "bob, carol" || !last.RequestedAt.Time.Equal(start.Add(2*time.Minute)) {
		t.Errorf("history %+v", last)
	}
	if got := opened(g); got != "True OpenRequested: Gate open requested at 2026-11-23T12:02:00Z by alice, approved by bob, carol: hotfix 1234" {
		t.Errorf("it says %q", got)
	}

	// An emergency needs no approvals. It is reported and counted.
	if n, ok := w.emergencyOpenings(); !ok || n != 0 {
		t.Errorf("the metric is %v, %v before", n, ok)
	}
	w.Close(g, w.In(3*time.Minute))
	w.Reconcile(g)
	w.In(4 * time.Minute)
	w.Events.Take("")
	w.asksToOpen(g, "greta", "outage 17", v1alpha1.OpenEmergencyAnnotation, w.FakeClock.Now().UTC().Format(time.RFC3339Nano))
	w.ExpectReleased(app, g)
	for range 2 {
		w.Reconcile(g)
	}
	if got := w.Events.Take("by greta in an emergency: outage 17"); len(got) < 2 || !strings.HasPrefix(got[0], "Warning Gate/production EmergencyOpened") {
		t.Errorf("events %q", got)
	}
	if n, _ := w.emergencyOpenings(); n != 1 || !g.Status.History[0].Emergency {
		t.Errorf("the metric is %v, history %+v", n, g.Status.History[0])
	}
}

// emergencyOpenings returns the metric of the Gate. It returns false if there is none.
func (w *world) emergencyOpenings() (float64, bool) {
	w.Helper()
	families, err := w.Registry.Gather()
	w.Must(err)
	for _, family := range families {
		if family.GetName() == "gating_gate_emergency_openings_total" {
			return family.GetMetric()[0].GetCounter().GetValue(), true
		}
	}
	return 0, false
}

// approvalThroughTheCaches is a case of TestThroughTheCaches: the Gate is enqueued by an approval, and when the time for approvals ends.
func approvalThroughTheCaches(t *testing.T, w *world) {
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Approvals: &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 1}}, Interval: v1alpha1.Duration{Duration: time.Hour}})
	ask := func(window string) {
		t.Helper()
		w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, time.Now().UTC().Format(time.RFC3339Nano)+window, v1alpha1.OpenRequestedByAnnotation, "alice")
		w.soonStatus(g, "it waits", func(g *v1alpha1.Gate) bool {
			return len(g.Status.Requests) == 1 && g.Status.Requests[0].State == v1alpha1.RequestWaiting
		})
	}
	ask("/3s")
	w.soonStatus(g, "it waits no longer", func(g *v1alpha1.Gate) bool { return len(g.Status.Requests) == 0 })
	ask("")
	_, what, _ := strings.Cut(ledger.FormatRequestApproval(g, &g.Status.Requests[0], time.Now()), ",")
	w.Annotate(g, v1alpha1.ApproveRequestedByAnnotation, what+" bob")
	w.soonStatus(g, "it is open", func(g *v1alpha1.Gate) bool { return conditions.IsTrue(g, v1alpha1.OpenedCondition) })
}
