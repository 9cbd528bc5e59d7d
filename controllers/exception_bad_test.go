package controllers_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// never replaces the periods of an exception with one that the API server accepts but that never begins.
func never(e *v1alpha1.GateException) {
	schedule := "0 0 31 4-6/2 *"
	never := []v1alpha1.Period{{Name: "never", Schedule: &schedule, Duration: duration(hour)}}
	if len(e.Spec.ClosePeriods) > 0 {
		e.Spec.ClosePeriods = never
	} else {
		e.Spec.OpenPeriods = never
	}
}

func TestInvalidExceptionClosesUntilFixed(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateOpened, Targets: []v1alpha1.TargetReference{named("apps")}})
	e := w.exception("typo", closingIt, 0, hour, never)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	if got := conditions.GetMessage(g, v1alpha1.OpenedCondition); !strings.HasSuffix(got, "exception 'typo' is invalid") {
		t.Errorf("the message of the gate is %q", got)
	}
	w.reportOn(e)
	w.saysException(e, "Active True InvalidSpec", "Ready False InvalidSpec", "Stalled True InvalidSpec")
	if got := conditions.GetMessage(e, meta.ReadyCondition); !strings.Contains(got, "Periods[0].schedule: Invalid value: ") {
		t.Errorf("the message of the exception is %q", got)
	}
	w.editException(e, closingIt)
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
}

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
