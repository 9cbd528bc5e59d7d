package controllers_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// forNow makes an exception valid for a time from now on.
func forNow(d time.Duration) func(*v1alpha1.GateException) {
	return func(e *v1alpha1.GateException) {
		now := time.Now().Truncate(time.Second)
		e.Spec.ValidFrom, e.Spec.ValidUntil = metav1.NewTime(now), metav1.NewTime(now.Add(d))
	}
}

// idleGate creates a Gate that holds a target and is only enqueued by events.
func (w *world) idleGate(name string, app *target.Object) *v1alpha1.Gate {
	w.Helper()
	g := w.Gate(name, v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: v1alpha1.Duration{Duration: hour}, Targets: []v1alpha1.TargetReference{named(app.GetName())},
	})
	w.soonHeld(app, g)
	return g
}

func (w *world) soonException(e *v1alpha1.GateException, reason string) {
	w.Helper()
	soon(w.TB, e.Name+" says "+reason, func() bool {
		w.Read(e)
		return conditions.GetReason(e, v1alpha1.ActiveCondition) == reason
	})
}

func TestWatchesOfExceptions(t *testing.T) {
	startManager(t, cluster)

	t.Run("an exception opens when its time has come, and closes when it is over", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.idleGate("production", app)
		e := w.exception("hotfix", openingIt, 0, 0, func(e *v1alpha1.GateException) {
			from := time.Now().Add(3 * time.Second).Truncate(time.Second)
			e.Spec.ValidFrom, e.Spec.ValidUntil = metav1.NewTime(from), metav1.NewTime(from.Add(3*time.Second))
		})
		w.soonException(e, v1alpha1.PendingReason)
		w.soonFree(app)
		if now := time.Now(); now.Before(e.Spec.ValidFrom.Time) {
			t.Errorf("opened at %s, before %s", now, e.Spec.ValidFrom)
		}
		w.soonHeld(app, g)
		if now := time.Now(); now.Before(e.Spec.ValidUntil.Time) {
			t.Errorf("closed at %s, before %s", now, e.Spec.ValidUntil)
		}
		w.soonException(e, v1alpha1.ExpiredReason)
		w.soonStatus(g, "the gate has noted it", func(g *v1alpha1.Gate) bool {
			return len(g.Status.Exceptions) == 1 && g.Status.Exceptions[0].Reason == v1alpha1.ExpiredReason
		})
	})

	t.Run("an exception comes before its gate, and goes", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		e := w.exception("hotfix", openingIt, 0, 0, forNow(hour))
		w.soonException(e, v1alpha1.GateNotFoundReason)
		g := w.ClosedGate("production", named("apps"))
		w.soonException(e, v1alpha1.InForceReason)
		w.soonStatus(g, "the gate is open", func(g *v1alpha1.Gate) bool {
			return conditions.GetReason(g, v1alpha1.OpenedCondition) == v1alpha1.ExceptionAppliesReason
		})
		w.Must(cluster.Client.Delete(w.Context(), e))
		w.soonHeld(app, g)
		soon(t, "the exception is gone", func() bool { return w.gone(e) })
	})

	t.Run("people approve, and an edit voids that", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.idleGate("production", app)
		w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 1}} })
		e := w.exception("hotfix", openingIt, 0, 0, forNow(hour))
		w.soonException(e, v1alpha1.WaitingApprovalReason)
		w.soonStatus(g, "the gate has nothing left to do", func(g *v1alpha1.Gate) bool {
			return g.Status.ObservedGeneration == g.Generation && len(g.Status.Exceptions) == 1 && conditions.IsReady(g)
		})
		w.stamped(e, "alice", "1 bob")
		w.soonFree(app)
		w.soonException(e, v1alpha1.InForceReason)
		w.editException(e, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(hour) })
		w.soonHeld(app, g)
		w.soonException(e, v1alpha1.WaitingApprovalReason)
		w.Edit(g, func() { g.Spec.Approvals = nil })
		w.soonFree(app)
		w.soonException(e, v1alpha1.InForceReason)
	})

	t.Run("the loser of an overlap hears of it", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.idleGate("production", app)
		older := w.exception("older", openingIt, 0, 0, forNow(hour))
		w.soonException(older, v1alpha1.InForceReason)
		soon(t, "another second begins, as the API server counts", func() bool { return time.Now().After(older.CreationTimestamp.Add(time.Second)) })
		newer := w.exception("newer", shuttingIt, 0, 0, forNow(hour))
		w.soonException(older, v1alpha1.OverlappedReason)
		w.soonHeld(app, g)
		w.Must(cluster.Client.Delete(w.Context(), newer))
		w.soonFree(app)
		w.soonException(older, v1alpha1.InForceReason)
	})
}
