package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestGateIsClosedWhileDependencyIsNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	g := w.watchingGate(staging())
	w.Reconcile(g)
	w.expectWaiting(g, app, "has no condition Ready")
	if got := w.Events.Take("Gate/production"); !slices.Equal(got, []string{
		"Normal Gate/production DependencyNotReady: Gate closed, Kustomization '" + w.Namespace + "/staging' is not ready: has no condition Ready"}) {
		t.Errorf("events %q", got)
	}

	for i, step := range []struct {
		status, reason, message string
		// waits is why the Gate is closed, empty if it is open.
		waits string
		since float64
	}{
		{"True", "ReconciliationSucceeded", "Applied revision: v1", "", 1},
		{"Unknown", "Progressing", "Reconciliation in progress", "", 1},
		{"True", "ReconciliationSucceeded", "Applied revision: v2", "", 1},
		{"False", "BuildFailed", "kustomize build failed:\nno such file", "BuildFailed: kustomize build failed: no such file", 4},
		{"Unknown", "Progressing", "Reconciliation in progress", "Progressing: Reconciliation in progress", 4},
		{"False", "HealthCheckFailed", "timeout", "HealthCheckFailed: timeout", 4},
		{"True", "ReconciliationSucceeded", "Applied revision: v3", "", 7},
	} {
		w.In(hours(float64(i + 1)))
		w.reports(stage, step.status, step.reason, step.message)
		result := w.Reconcile(g)
		if step.waits == "" {
			w.expectOpened(g, app)
		} else {
			w.expectWaiting(g, app, step.waits)
		}
		seen := g.Status.Dependencies
		if len(seen) != 1 || seen[0].Name != "staging" || seen[0].Namespace != w.Namespace ||
			seen[0].Ready != (step.waits == "") || seen[0].Message != step.waits || !seen[0].Since.Time.Equal(start.Add(hours(step.since))) {
			t.Errorf("step %d: status.dependencies is %+v", i, seen)
		}
		if !conditions.IsReady(g) || len(g.Status.TargetFailures()) > 0 || result.RequeueAfter > 2*time.Minute {
			t.Errorf("step %d: %v, %v", i, conditions.Get(g, meta.ReadyCondition), result)
		}
	}
	// The object is deleted.
	w.PatchAsFlux(stage, `{"metadata":{"finalizers":["example.org/test"]}}`)
	w.Must(cluster.Client.Delete(w.Context(), &stage.Unstructured))
	w.Reconcile(g)
	w.expectWaiting(g, app, "is being deleted")
	w.PatchAsFlux(stage, `{"metadata":{"finalizers":null}}`)
	w.Reconcile(g)
	w.expectWaiting(g, app, "does not exist")
	w.Edit(g, func() { g.Spec.DependsOn = nil })
	w.Reconcile(g)
	if len(g.Status.Dependencies) > 0 {
		t.Errorf("status.dependencies is still %+v", g.Status.Dependencies)
	}
}

func TestUnreadableDependency(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, stage := w.NewKustomization("apps", nil), w.NewKustomization("staging", nil)
	w.reports(stage, "True", "Succeeded", "")
	live, broken := w.Targets, unreadable{w.Targets, map[string]error{"staging": errBroken}}
	w.Targets = broken
	g := w.watchingGate(staging(), v1alpha1.DependencyReference{Kind: "Kustomization", Name: "apps", ReadyExpr: "true"})
	w.Edit(g, func() { g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{hardFreeze(hours(1), hours(2))} })
	if result, err := w.Try(g); err == nil || result.RequeueAfter <= 0 {
		t.Errorf("not retried: %v, %v", result, err)
	}
	w.ExpectHeld(app, g)
	equal(t, failuresOf(g), []string{"Kustomization/staging ReadFailed"})
	w.Targets = live
	w.Reconcile(g)
	w.expectOpened(g, app)
	expectNone(t, failuresOf(g))

	w.Targets = broken
	w.In(hours(1)) // a close that is due does not depend on the object
	if _, err := w.Try(g); err == nil {
		t.Error("not retried")
	}
	w.ExpectHeld(app, g)
	if got := opened(g); !strings.HasPrefix(got, "False ClosePeriod: Gate closed by close period 'freeze', ") || !g.Status.Dependencies[1].Ready {
		t.Errorf("%s, dependencies %+v", got, g.Status.Dependencies)
	}
}
