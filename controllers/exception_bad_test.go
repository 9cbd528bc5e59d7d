package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// never replaces the periods of an exception by one that the API server accepts and that never begins.
func never(e *v1alpha1.GateException) {
	schedule := "0 0 31 4-6/2 *"
	never := []v1alpha1.Period{{Name: "never", Schedule: &schedule, Duration: duration(hour)}}
	if len(e.Spec.ClosePeriods) > 0 {
		e.Spec.ClosePeriods = never
	} else {
		e.Spec.OpenPeriods = never
	}
}

func TestInvalidExceptionFailsClosed(t *testing.T) {
	for name, tc := range map[string]struct {
		state v1alpha1.State
		does  func(*v1alpha1.GateException)
		held  bool
	}{
		"open a closed gate":             {v1alpha1.StateClosed, openingIt, true},
		"close an opened gate":           {v1alpha1.StateOpened, closingIt, true},
		"open an opened gate":            {v1alpha1.StateOpened, openingIt, false},
		"close an opened gate otherwise": {v1alpha1.StateOpened, replacingIt, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := w.kustomization("apps", nil)
			g := w.Gate("production", v1alpha1.GateSpec{Default: tc.state, Targets: []v1alpha1.TargetReference{named("apps")}})
			e := w.exception("typo", tc.does, 0, hour, never)
			w.reconcile(g)
			if held := w.suspended(app); held != tc.held {
				t.Errorf("held is %v", held)
			}
			if got := conditions.GetMessage(g, v1alpha1.OpenedCondition); !strings.HasSuffix(got, "exception 'typo' is invalid") {
				t.Errorf("the gate says %q", got)
			}
			w.reportOn(e)
			w.saysException(e, "Active True InvalidSpec", "Ready False InvalidSpec", "Stalled True InvalidSpec")
			if got := conditions.GetMessage(e, meta.ReadyCondition); !strings.Contains(got, "Periods[0].schedule: Invalid value: ") {
				t.Errorf("the exception says %q", got)
			}
			w.editException(e, tc.does)
			w.reportOn(e)
			w.saysException(e, "Active True InForce", "Ready True Succeeded")
		})
	}
}

func TestOfTwoThatOverlapTheNewerWinsAndTheOtherSaysSo(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	older := w.exception("a-older", openingIt, 0, 4*hour)
	soon(t, "another second begins, as the API server counts", func() bool { return time.Now().After(older.CreationTimestamp.Add(time.Second)) })
	newer := w.exception("b-newer", shuttingIt, hour, 2*hour)
	for _, step := range []struct {
		in           time.Duration
		held         bool
		older, newer string
	}{
		{0, false, "Active True InForce", "Active False Pending"},
		{hour, true, "Active False Overlapped", "Active True InForce"},
		{2 * hour, false, "Active True InForce", "Active False Expired"},
	} {
		w.in(step.in)
		w.reconcile(g)
		if got := w.suspended(app); got != step.held {
			t.Errorf("in %s: held is %v", step.in, got)
		}
		w.reportOn(older)
		w.reportOn(newer)
		for e, want := range map[*v1alpha1.GateException]string{older: step.older, newer: step.newer} {
			c := conditions.Get(e, v1alpha1.ActiveCondition)
			if got := "Active " + string(c.Status) + " " + c.Reason; got != want {
				t.Errorf("in %s: %s says %q, want %q", step.in, e.Name, got, want)
			}
			overlapped := e == older && step.in < 2*hour
			if ready := conditions.Get(e, meta.ReadyCondition); (ready.Reason == v1alpha1.OverlappedReason) != overlapped ||
				overlapped && !strings.HasPrefix(ready.Message, "Exception 'b-newer' of gate '"+key(g)+"' is newer and wins from ") {
				t.Errorf("in %s: %s is ready %v", step.in, e.Name, ready)
			}
		}
	}
}

func TestACrashAfterAnyWriteOfAnExceptionChangesNothingInTheEnd(t *testing.T) {
	t.Parallel()
	crashes := 0
	for n := range 20 {
		w := newWorld(t)
		app := w.kustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		e := w.exception("hotfix", openingIt, 0, hour, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(hour) })
		left, crashed := n, false
		w.writes.after = func(string) error {
			if left--; left < 0 && !crashed {
				crashed = true
				return errBroken
			}
			return nil
		}
		step := func() {
			for range 2 { // the one that crashes, and the one after the restart
				_, _ = w.tryException(e)
				_, _ = w.try(g)
			}
			w.Read(e)
		}
		step()
		w.saysException(e, "Active True InForce", "Ready True Succeeded")
		if w.suspended(app) {
			t.Fatalf("write %d: held although the exception is in force", n)
		}
		w.in(hour)
		step()
		w.expectHeld(app, g)
		w.saysException(e, "Active False Expired", "Ready True Succeeded")
		w.in(2 * hour)
		for range 3 {
			_, _ = w.tryException(e)
			_, _ = w.try(g)
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
