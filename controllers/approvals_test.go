package controllers_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// The Gate requires approvals after the exception has begun to apply. Each step continues with the state of the last one.
func TestExceptionAppliesWhileApproved(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	e := w.exception("hotfix", openingIt, 0, hour, func(e *v1alpha1.GateException) {
		schedule := "0 2 1-7 * SUN"
		e.Spec.OpenPeriods = append(e.Spec.OpenPeriods, v1alpha1.Period{Name: "patching", Schedule: &schedule, Duration: duration(hour)})
	})
	w.stamped(e, "alice", "")
	w.reportOn(e)
	if got := w.Events.Take("AmbiguousSchedule: "); len(got) != 2 || !strings.HasPrefix(got[0], "Warning GateException/hotfix AmbiguousSchedule: open period 'patching': '0 2 1-7 * SUN' starts on ") {
		t.Errorf("events %q", got)
	}
	w.Reconcile(g)
	w.ExpectUntouched(app)

	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}} })
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.reportOn(e)
	w.expectEvents(v1alpha1.ExceptionInterruptedReason)

	for _, step := range []struct{ approvals, says string }{
		{"", "0 given; its authors cannot approve it: alice"},
		{"1 bob", "1 given by bob; its authors cannot approve it: alice"},
		{"1 alice\n1 bob\n1 bob", "1 given by bob; its authors cannot approve it: alice"},
	} {
		w.stamped(e, "alice", step.approvals)
		w.reportOn(e)
		w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
		want := fmt.Sprintf("Exception waits for approval: gate '%s' requires 2 approvals, %s; %s", key(g), step.says, howTo(e))
		if got := conditions.GetMessage(e, v1alpha1.ActiveCondition); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", step.approvals, got, want)
		}
	}
	w.Reconcile(g)
	w.ExpectHeld(app, g)

	w.In(time.Minute)
	w.Events.Take("")
	w.stamped(e, "alice", "1 carol") // the approval by bob is in the status, so Flux may remove it from the annotation
	w.asks(e, gate.FormatApproval(e, w.FakeClock.Now()))
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
	if got := w.Events.Take("Exception approved by carol"); len(got) != 2 {
		t.Errorf("events %q", got)
	}
	a := e.Status.Approvals
	if len(a) != 2 || a[0].ApprovedBy != "bob" || !a[0].RecordedAt.Time.Equal(start) || a[1].ApprovedBy != "carol" || !a[1].RecordedAt.Time.Equal(start.Add(time.Minute)) {
		t.Errorf("the status has %+v", a)
	}
	w.Reconcile(g)
	w.ExpectReleased(app, g)

	// Another approval has one event, and does not activate the exception again.
	w.Events.Take("")
	w.editException(e, func(e *v1alpha1.GateException) {
		e.Annotations[v1alpha1.ApproveRequestedByAnnotation] = stampsOf(e, "1 carol\n1 dave")
	})
	w.reportOn(e)
	w.expectEvents(v1alpha1.ExceptionApprovedReason)

	// An edit voids the approvals. The Gate does not wait for the status of the exception. The annotation of an approval that counted before
	// is not refused in addition.
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(2 * hour) })
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.reportOn(e)
	w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
	reasons := map[string]int{}
	for _, event := range w.Events.Take("") {
		reasons[strings.TrimSuffix(strings.Fields(event)[2], ":")]++
	}
	equal(t, reasons, map[string]int{v1alpha1.ExceptionInterruptedReason: 2, v1alpha1.ApprovalsVoidedReason: 6, v1alpha1.AmbiguousScheduleReason: 2})
	if len(e.Status.Approvals) > 0 {
		t.Errorf("approvals %+v", e.Status.Approvals)
	}
	if got, want := conditions.GetMessage(e, v1alpha1.ActiveCondition), `" does not count: generation 1 is not the current one; `+howTo(e); !strings.HasSuffix(got, want) {
		t.Errorf("\ngot  %q\nwant %q", got, want)
	}

	// An expired exception keeps its approvals, also after another edit.
	w.stamped(e, "alice", "2 bob\n2 carol")
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
	w.In(3 * hour)
	w.reportOn(e)
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(1000 * hour) })
	w.reportOn(e)
	if len(e.Status.Approvals) != 2 {
		t.Errorf("approvals %+v", e.Status.Approvals)
	}
}

// howTo returns the command that approves the generation of an exception that was read.
func howTo(e *v1alpha1.GateException) string {
	return fmt.Sprintf("to approve generation %[1]d after reading it: kubectl -n %[2]s annotate --overwrite gateexception/%[3]s "+
		"approve.gate.fluxcd.io/requestedAt=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ),generation=%[1]d,uid=%[4]s", e.Generation, e.Namespace, e.Name, e.UID)
}

func TestApprovalsCountOnlyIfStampedAndAreNotLost(t *testing.T) {
	w := newWorld(t)
	w.Unstamped = true
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}} })
	e := w.exception("hotfix", openingIt, 0, hour)
	w.stamped(e, "alice", "1 bob\n1 carol")
	for range 2 {
		w.reportOn(e)
	}
	w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
	const refused = "the approvals in its annotations do not count, because the policy gate-exception-stamp is missing or cannot be read"
	if got, want := conditions.GetMessage(e, v1alpha1.ActiveCondition), "; "+refused+"; "+howTo(e); !strings.HasSuffix(got, want) {
		t.Errorf("\ngot  %q\nwant %q", got, want)
	}
	if got := w.Events.Take("ApprovalRefused: "); len(got) != 2 || !strings.Contains(got[0], "Exception is not approved: "+refused) {
		t.Errorf("events %q, want %q", got, refused)
	}
	w.Reconcile(g)
	if isOpened(g) {
		t.Error(opened(g))
	}

	// The reconciler sees the approval by bob again, in a stale cache.
	w.Unstamped = false
	stale := e.DeepCopy()
	w.reportOn(e)
	w.stamped(e, "alice", "")
	w.Events.Take("")
	r := w.reporter()
	stale.Annotations[v1alpha1.ApproveRequestedByAnnotation] = stampsOf(e, "1 bob")
	r.Client = behind{w.Client, stale}
	result, err := r.Reconcile(w.Context(), requestFor(e))
	if err != nil || result.RequeueAfter != ownwrites.StaleRetry {
		t.Errorf("got %v, %v", result, err)
	}
	w.Read(e)
	if len(e.Status.Approvals) != 2 {
		t.Errorf("the status has %+v", e.Status.Approvals)
	}
	w.expectEvents()
}
