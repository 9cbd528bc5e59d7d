package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

const hour = time.Hour

func TestExceptionAppliesExactlyWhileValid(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.Interval.Duration = 5 * hour })
	e := w.exception("hotfix", openingIt, hour, 3*hour)
	before := w.Reconcile(g)
	if before.RequeueAfter != hour || g.Status.NextTransition == nil || !g.Status.NextTransition.At.Equal(&e.Spec.ValidFrom) ||
		g.Status.NextTransition.Exception != "hotfix" || g.Status.NextTransition.Reason != v1alpha1.ExceptionAppliesReason {
		t.Errorf("next is %+v, after %s", g.Status.NextTransition, before.RequeueAfter)
	}
	w.In(hour - time.Second)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if left := w.reportOn(e).RequeueAfter; left != time.Second {
		t.Errorf("looks again in %s", left)
	}
	w.saysException(e, "Active False Pending", "Ready True Succeeded")
	if e.Labels[v1alpha1.GateLabel] != "production" || !slices.Contains(e.Finalizers, v1alpha1.GateFinalizer) {
		t.Errorf("labels %v, finalizers %v", e.Labels, e.Finalizers)
	}

	w.In(hour)
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	w.Events.Take("")
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
	want := fmt.Sprintf("Gate opened by exception 'hotfix', scheduled for closing at %s", e.Spec.ValidUntil.UTC().Format(time.RFC3339))
	if got := conditions.GetMessage(g, v1alpha1.OpenedCondition); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	equal(t, w.Events.TakeMetadata(t, "Normal Gate/production ExceptionActivated: ", ourGroup), map[string]string{
		"gate": key(g), "exception": "hotfix", "reason": "ExceptionActivated", "token": "2026-11-23T13:00:00Z",
	})

	w.In(3 * hour)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.reportOn(e)
	w.saysException(e, "Active False Expired", "Ready True Succeeded")
	w.expectEvents("ExceptionExpired")
	w.reportOn(e)
	w.expectEvents()
	if e.Labels[v1alpha1.ExpiredLabel] != "true" {
		t.Errorf("labels %v", e.Labels)
	}
	from, until := at(hour), at(3*hour)
	w.expectRecords(g, v1alpha1.ExceptionRecord{
		Name: "hotfix", ValidFrom: from, ValidUntil: until,
		Reason: v1alpha1.ExpiredReason, AppliedAt: &from, ExpiredAt: &until,
	})
}

// expectEvents checks that since the last call, there was one event with each of the reasons on the exception and on its Gate, and no other
// event.
func (w *world) expectEvents(reasons ...string) {
	w.Helper()
	all := w.Events.Take("")
	for _, reason := range reasons {
		onGate, onException := 0, 0
		for _, event := range all {
			switch {
			case !strings.Contains(event, " "+reason+": "):
			case strings.Contains(event, " Gate/"):
				onGate++
			default:
				onException++
			}
		}
		if onGate != 1 || onException != 1 {
			w.Errorf("%s: %d events on the gate, %d on the exception", reason, onGate, onException)
		}
	}
	if len(all) != 2*len(reasons) {
		w.Errorf("want %q alone, got events %q", reasons, all)
	}
}

func (w *world) expectRecords(g *v1alpha1.Gate, want ...v1alpha1.ExceptionRecord) {
	w.Helper()
	describe := func(records []v1alpha1.ExceptionRecord) (all []string) {
		for _, r := range records {
			all = append(all, fmt.Sprintf("%s %s..%s %s %v %v", r.Name, r.ValidFrom.UTC(), r.ValidUntil.UTC(), r.Reason, r.AppliedAt.ToUnstructured(), r.ExpiredAt.ToUnstructured()))
		}
		return all
	}
	if got, want := describe(g.Status.Exceptions), describe(want); !slices.Equal(got, want) {
		w.Errorf("records:\ngot  %q\nwant %q", got, want)
	}
}

func TestDeletedExceptionStaysUntilGateDecidesWithoutIt(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	e := w.exception("hotfix", openingIt, 0, hour)
	w.reportOn(e)
	w.Reconcile(g)
	w.ExpectUntouched(app)
	w.Events.Take("")
	w.Must(cluster.Client.Delete(w.Context(), e))
	w.In(time.Minute)
	w.reportOn(e)
	if w.gone(e) {
		t.Fatal("the exception is gone before its gate knows")
	}
	w.expectEvents()
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.reportOn(e)
	if !w.gone(e) {
		t.Fatal("the exception is still there")
	}
	w.expectEvents("ExceptionExpired")
	from, now := at(0), at(time.Minute)
	w.expectRecords(g, v1alpha1.ExceptionRecord{
		Name: "hotfix", ValidFrom: from, ValidUntil: at(hour),
		Reason: v1alpha1.ExpiredReason, AppliedAt: &from, ExpiredAt: &now,
	})

	// There is neither an event nor a record of an exception that was deleted before it applied.
	records := g.Status.Exceptions
	planned := w.exception("planned", openingIt, hour, 2*hour)
	w.reportOn(planned)
	w.Reconcile(g)
	w.Must(cluster.Client.Delete(w.Context(), planned))
	w.Reconcile(g)
	w.Events.Take("")
	w.reportOn(planned)
	if !w.gone(planned) {
		t.Error("the planned exception still exists")
	}
	w.expectEvents()
	w.expectRecords(g, records...)
}
