package controllers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// fourEyes creates a closed Gate that asks for two approvals, on an API server that stamps names.
func (w *world) fourEyes() *v1alpha1.Gate {
	w.Helper()
	w.Stamped = func(context.Context) (bool, error) { return true, nil }
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{OpenRequests: &v1alpha1.ApprovalRule{Required: 2}} })
	w.Reconcile(g)
	return g
}

// asksToOpen writes the open request of somebody.
func (w *world) asksToOpen(g *v1alpha1.Gate, who, reason string, more ...string) {
	w.Helper()
	w.Annotate(g, append([]string{v1alpha1.OpenRequestedAtAnnotation, w.FakeClock.Now().UTC().Format(time.RFC3339Nano),
		v1alpha1.OpenRequestedByAnnotation, who, v1alpha1.OpenReasonAnnotation, reason}, more...)...)
	w.Reconcile(g)
}

// approvedBy stamps approvals of the first request of a Gate.
func (w *world) approvedBy(g *v1alpha1.Gate, people ...string) {
	w.Helper()
	_, what, _ := strings.Cut(ledger.FormatRequestApproval(g, &g.Status.Requests[0], w.FakeClock.Now()), ",")
	var lines []string
	for _, who := range people {
		lines = append(lines, what+" "+who)
	}
	w.Annotate(g, v1alpha1.ApproveRequestedByAnnotation, strings.Join(lines, "\n"))
}

func TestAGateOpensWithTheLastApprovalAndTellsWho(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.fourEyes()
	w.asksToOpen(g, "alice", "hotfix 1234")
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.In(time.Minute)
	w.approvedBy(g, "alice", "bob", "bob")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if got := w.Events.Take("approved by bob, waits for 1 approval: hotfix 1234"); len(got) != 2 || !strings.Contains(strings.Join(got, "\n"), "Normal Gate/production RequestApproved") {
		t.Errorf("on the Gate and on what it holds: %q", got)
	}
	w.ResetState() // a restart: the status has bob's, and Flux has taken the annotations away
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
	w.In(3 * time.Minute)
	w.Edit(g, func() { g.Spec.Approvals.OpenRequests.Required = 9 }) // what is in force stays so
	w.Reconcile(g)
	w.ExpectReleased(app, g)
}

// By the clock of the API server it opens no earlier, either.
func TestAnApprovedRequestOpensByBothClocks(t *testing.T) {
	w := newWorld(t)
	w.ahead(2 * time.Second)
	app := w.NewKustomization("apps", nil)
	g := w.fourEyes()
	w.asksToOpen(g, "alice", "")
	w.In(time.Minute)
	w.approvedBy(g, "bob", "carol")
	for now := time.Minute; now < time.Minute+4*time.Second; {
		w.In(now)
		now += max(w.Reconcile(g).RequeueAfter, time.Millisecond)
	}
	w.ExpectReleased(app, g)
	if r := g.Status.Requests[0]; len(r.Approvals) != 2 || r.State != v1alpha1.RequestInForce {
		t.Errorf("request %+v", r)
	}
}

func TestEmergenciesAreReportedAndCounted(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.fourEyes()
	if n, ok := w.emergencyOpenings(); !ok || n != 0 {
		t.Errorf("the metric is %v, %v before", n, ok)
	}
	other := newWorld(t)
	free := other.ClosedGate("production")
	other.Edit(free, func() { free.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}} })
	other.Reconcile(free)
	if n, ok := other.emergencyOpenings(); ok {
		t.Errorf("a Gate whose open requests need no approval has the metric %v", n)
	}
	w.In(time.Minute)
	w.Events.Take("")
	w.asksToOpen(g, "greta", "outage 17", v1alpha1.OpenEmergencyAnnotation, w.FakeClock.Now().UTC().Format(time.RFC3339Nano))
	w.ExpectReleased(app, g)
	for range 2 {
		w.Reconcile(g)
	}
	if got := w.Events.Take("by greta in an emergency: outage 17"); len(got) < 2 || !strings.HasPrefix(got[0], "Warning Gate/production EmergencyOpened") {
		t.Errorf("events %q", got)
	}
	if n, _ := w.emergencyOpenings(); n != 1 {
		t.Errorf("the metric is %v", n)
	}
	if !g.Status.History[0].Emergency {
		t.Errorf("history %+v", g.Status.History[0])
	}
}

// emergencyOpenings returns the metric of the Gate, and whether it is there.
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

func TestAGateThatAsksForApprovalsOpensByNoRequestThatNobodyStamps(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.fourEyes()
	w.asksToOpen(g, "alice", "")
	w.Stamped = gatecontroller.StampedBy(cluster.Client, gatecontroller.ApprovalPolicy) // this API server has no config/policies
	w.In(time.Minute)
	w.approvedBy(g, "bob", "carol")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if got := conditions.GetMessage(g, v1alpha1.OpenedCondition); !strings.HasSuffix(got, ", the approvals in its annotations do not count, because the policy gate-approval is missing or cannot be read") {
		t.Errorf("it says %q", got)
	}
	w.Events.Take("")
	w.asksToOpen(g, "greta", "outage", v1alpha1.OpenEmergencyAnnotation, w.FakeClock.Now().UTC().Format(time.RFC3339Nano))
	w.ExpectHeld(app, g)
	if got := w.Events.Take("the requester is not verified: that needs config/policies"); len(got) != 2 {
		t.Errorf("events %q", got)
	}
}

// While the API server does not say whether it stamps, a request waits to be looked at, and a close does not.
func TestACloseDoesNotWaitForTheAnswerWhetherNamesAreStamped(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.fourEyes()
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateOpened })
	w.Reconcile(g)
	w.Stamped = func(context.Context) (bool, error) { return false, errors.New("gone for lunch") }
	w.In(time.Minute)
	w.asksToOpen(g, "alice", "")
	if slices.ContainsFunc(g.Status.Memory.HandledRequests, func(m v1alpha1.HandledRequest) bool { return m.LastHandled != "" }) {
		t.Errorf("it is handled: %+v", g.Status.Memory.HandledRequests)
	}
	if _, err := w.Try(g); err != nil {
		t.Fatal(err)
	}
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, w.FakeClock.Now().UTC().Format(time.RFC3339Nano), v1alpha1.CloseRequestedByAnnotation, "carl")
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if result, err := w.Try(g); err != nil || result.RequeueAfter > time.Second {
		t.Errorf("it is looked at again in %s, %v", result.RequeueAfter, err)
	}
	w.Stamped = func(context.Context) (bool, error) { return true, nil }
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if last := g.Status.History[0]; last.Action != v1alpha1.RequestOpen || last.Refused == "" {
		t.Errorf("history %+v", last)
	}
}

// The dependency is read after the decision, because the Gate is closed in any case.
func TestAnOpenThatWaitsForStampsIsRetriedWithDependenciesToo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.fourEyes()
	w.Edit(g, func() {
		g.Spec.DependsOn = []v1alpha1.DependencyReference{{APIVersion: kustomizev1.GroupVersion.String(), Kind: kustomizev1.KustomizationKind, Name: "database"}}
	})
	w.Reconcile(g)
	w.Stamped = func(context.Context) (bool, error) { return false, errors.New("gone for lunch") }
	w.asksToOpen(g, "alice", "")
	if result, err := w.Try(g); err != nil || result.RequeueAfter > time.Second {
		t.Errorf("it is requeued after %s, %v", result.RequeueAfter, err)
	}
}

// In the real process, an approval wakes the Gate, and so does the end of the time to approve.
func TestAnApprovalWakesItsGate(t *testing.T) {
	w := newWorld(t)
	startManager(t, cluster, func(r *controllers.Gating) {
		r.Stamped = func(context.Context) (bool, error) { return true, nil }
	})
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
