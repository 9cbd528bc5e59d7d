package controllers_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestCrashAfterAnyWriteOfExceptionIsRepaired(t *testing.T) {
	t.Parallel()
	crashes := 0
	for n := range 20 {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		e := w.exception("hotfix", openingIt, 0, hour, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(hour) })
		left, crashed := n, false
		w.Writes.After = func(string) error {
			if left--; left < 0 && !crashed {
				crashed = true
				return errBroken
			}
			return nil
		}
		step := func() {
			for range 2 { // the reconciliation that crashes, and the one after the restart
				_, _ = w.tryException(e)
				_, _ = w.Try(g)
			}
			w.Read(e)
		}
		step()
		w.saysException(e, "Active True InForce", "Ready True Succeeded")
		if w.Suspended(app) {
			t.Fatalf("write %d: held although the exception is in force", n)
		}
		w.In(hour)
		step()
		w.ExpectHeld(app, g)
		w.saysException(e, "Active False Expired", "Ready True Succeeded")
		w.In(2 * hour)
		for range 3 {
			_, _ = w.tryException(e)
			_, _ = w.Try(g)
		}
		if !w.gone(e) {
			t.Errorf("write %d: the exception is still there", n)
		}
		from, until := at(0), at(hour)
		w.expectRecords(g, v1alpha1.ExceptionRecord{
			Name: "hotfix", ValidFrom: from, ValidUntil: until,
			Reason: v1alpha1.ExpiredReason, AppliedAt: &from, ExpiredAt: &until,
		})
		if !crashed {
			break
		}
		crashes++
	}
	if crashes < 6 {
		t.Errorf("%d crashes: does the test still see the writes?", crashes)
	}
}
