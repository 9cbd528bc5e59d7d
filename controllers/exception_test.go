package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
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
	w.expectEvents("ExceptionActivated")

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

func TestExceptionWithoutGateIsDeletedImmediately(t *testing.T) {
	w := newWorld(t)
	for name, prepare := range map[string]func(*v1alpha1.Gate){
		"gone": func(g *v1alpha1.Gate) {
			w.Must(cluster.Client.Delete(w.Context(), g))
			w.Reconcile(g)
		},
		"suspended":      func(g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.Suspend = true }) },
		"under-deletion": func(g *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), g)) },
	} {
		g := w.ClosedGate(name)
		e := w.exception(name, openingIt, 0, hour, func(e *v1alpha1.GateException) { e.Spec.GateRef.Name = name })
		w.reportOn(e)
		w.Reconcile(g)
		prepare(g)
		w.Must(cluster.Client.Delete(w.Context(), e))
		w.reportOn(e)
		if !w.gone(e) {
			t.Errorf("the gate is %s, and the exception still exists", name)
		}
	}
}

func TestExpiredExceptionIsKeptWithoutTTL(t *testing.T) {
	w := newWorld(t)
	w.ClosedGate("production")
	kept := w.exception("kept", openingIt, 0, hour)
	brief := w.exception("brief", openingIt, hour, 2*hour, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(5 * time.Minute) })
	w.reportOn(kept)
	w.reportOn(brief)
	w.In(2 * hour)
	if left := w.reportOn(kept).RequeueAfter; left != 10*time.Minute { // it is reconciled for a day, because the clock may be wrong
		t.Errorf("the expired exception is requeued after %s", left)
	}
	w.In(hour / 2)
	w.reportOn(kept)
	w.saysException(kept, "Active True InForce", "Ready True Succeeded")
	w.In(2 * hour)
	w.reportOn(kept)
	if left := w.reportOn(brief).RequeueAfter; left != 5*time.Minute {
		t.Errorf("it is to be deleted in %s", left)
	}
	w.In(2*hour + 5*time.Minute - time.Second)
	w.reportOn(brief)
	if brief.DeletionTimestamp != nil {
		t.Error("deleted too early")
	}
	w.In(2*hour + 5*time.Minute)
	w.reportOn(brief)
	w.reportOn(brief)
	w.In(1000 * hour)
	if left := w.reportOn(kept).RequeueAfter; left != 0 {
		t.Errorf("the expired exception is requeued after %s", left)
	}
	if !w.gone(brief) || w.gone(kept) {
		t.Error("the one with a ttl goes, the other stays")
	}
}

func TestConcurrentlyEditedExceptionIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.ClosedGate("production")
	e := w.exception("brief", openingIt, 0, hour, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(0) })
	w.In(hour)
	w.reportOn(e)
	w.Writes.Before = once("delete GateException", func() error {
		w.editException(e.DeepCopy(), func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(2 * hour) })
		return nil
	})
	if left := w.reportOn(e).RequeueAfter; left != ownwrites.StaleRetry {
		t.Errorf("looks again in %s", left)
	}
	if e.DeletionTimestamp != nil {
		t.Error("the deletion went through")
	}
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
}

func TestShardReconcilesExceptionsOfItsGatesAndOfNoGate(t *testing.T) {
	w := newWorld(t)
	g := w.ClosedGate("production")
	e := w.exception("hotfix", openingIt, 0, hour)
	other := w.reporter()
	other.Client = withoutGates{w.Client}
	look := func() {
		t.Helper()
		_, err := other.Reconcile(w.Context(), requestFor(e))
		w.Must(err)
		w.Read(e)
	}
	look()
	if conditions.Get(e, v1alpha1.ActiveCondition) != nil || len(e.Finalizers) > 0 {
		t.Errorf("the other shard wrote %+v", e)
	}
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
	w.Must(cluster.Client.Delete(w.Context(), g))
	look()
	w.saysException(e, "Active False GateNotFound", "Ready False GateNotFound")
}
