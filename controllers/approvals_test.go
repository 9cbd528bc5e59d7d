package controllers_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	gatecontroller "github.com/fluxcd/gating-controller/controllers/gate"
	"github.com/fluxcd/gating-controller/controllers/ownwrites"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// twoApprovals creates a closed Gate that asks for two approvals, a target of it,
// and an exception by alice that opens it for an hour.
func (w *world) twoApprovals() (*v1alpha1.Gate, *v1alpha1.GateException) {
	w.Helper()
	g := w.ClosedGate("production", named("apps"))
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 2}} })
	e := w.exception("hotfix", openingIt, 0, hour)
	w.stamped(e, "alice", "")
	w.reportOn(e)
	w.Reconcile(g)
	return g, e
}

func TestAnExceptionWaitsUntilEnoughOthersHaveApprovedIt(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g, e := w.twoApprovals()
	w.ExpectHeld(app, g)
	for _, step := range []struct{ approvals, says string }{
		{"", "0 given; its authors cannot approve it: alice"},
		{"1 bob", "1 given by bob; its authors cannot approve it: alice"},
		{"1 bob\n1 bob", "1 given by bob; its authors cannot approve it: alice"},
		{"1 alice\n1 bob", "1 given by bob; its authors cannot approve it: alice"},
		{"0 carol\n2 carol\ncarol\n1 ", "1 given by bob; its authors cannot approve it: alice"},
	} {
		w.stamped(e, "alice", step.approvals)
		w.reportOn(e)
		w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
		want := fmt.Sprintf("Exception waits for approval: gate '%s' requires 2 approvals, %s; %s", key(g), step.says, howTo(e))
		if got := conditions.GetMessage(e, v1alpha1.ActiveCondition); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", step.approvals, got, want)
		}
		w.Reconcile(g)
		w.ExpectHeld(app, g)
	}
	w.In(time.Minute)
	w.Events.Take("")
	w.stamped(e, "alice", "1 carol") // bob's is in the status: Flux may strip it
	w.reportOn(e)
	w.saysException(e, "Active True InForce", "Ready True Succeeded")
	if got, want := len(w.Events.Take("Exception approved by carol")), 2; got != want {
		t.Errorf("%d events, want %d", got, want)
	}
	a := e.Status.Approvals
	if len(a) != 2 || a[0].ApprovedBy != "bob" || !a[0].RecordedAt.Time.Equal(start) || a[1].ApprovedBy != "carol" || !a[1].RecordedAt.Time.Equal(start.Add(time.Minute)) {
		t.Errorf("the status has %+v", a)
	}
	w.Reconcile(g)
	w.ExpectReleased(app, g)
}

// howTo is the command that approves the generation of an exception as it was read.
func howTo(e *v1alpha1.GateException) string {
	return fmt.Sprintf("to approve generation %[1]d after reading it: kubectl -n %[2]s annotate --overwrite gateexception/%[3]s "+
		"approve.gate.fluxcd.io/requestedAt=$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ),generation=%[1]d,uid=%[4]s", e.Generation, e.Namespace, e.Name, e.UID)
}

func TestAnEditVoidsApprovals(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.reportOn(e)
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(100 * hour) })
	w.Reconcile(g) // before the report: the gate looks itself
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.reportOn(e)
	w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
	if len(e.Status.Approvals) > 0 {
		t.Errorf("the status has %+v", e.Status.Approvals)
	}
	if got := w.Events.Take("is void: the exception was edited since"); len(got) != 4 {
		t.Errorf("events %q", got)
	}
	w.Reconcile(g)
	w.ExpectHeld(app, g)
}

func TestAGateThatBeginsToAskForApprovalsStopsWhatHasNone(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g := w.ClosedGate("production", named("apps"))
	e := w.exception("hotfix", openingIt, 0, hour)
	w.reportOn(e)
	w.Reconcile(g)
	w.ExpectUntouched(app)
	w.Edit(g, func() { g.Spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 1}} })
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.Events.Take("")
	w.reportOn(e)
	w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
	if got := w.Events.Take("ExceptionInterrupted: "); len(got) != 2 {
		t.Errorf("events %q", got)
	}
}

func TestApprovalsThatNobodyStampsAreWorthNothing(t *testing.T) {
	w := newWorld(t)
	w.Unstamped = true
	app := w.NewKustomization("apps", nil)
	g, e := w.twoApprovals()
	w.stamped(e, "x", "1 bob\n1 carol")
	w.reportOn(e)
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
	if got := conditions.GetMessage(e, v1alpha1.ActiveCondition); !strings.HasSuffix(got, "; the approvals in its annotations do not count, because the policy gate-exception-stamp is missing or cannot be read; "+howTo(e)) {
		t.Errorf("it says %q", got)
	}
	if stamped, err := gatecontroller.StampedBy(cluster.Client, gatecontroller.ExceptionStamp)(w.Context()); err != nil || stamped {
		t.Errorf("this API server stamps: %v, %v", stamped, err)
	}
}

func TestACacheThatIsBehindForgetsNoApproval(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
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

func TestOneMoreApprovalActivatesNothingAgain(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.reportOn(e)
	w.Events.Take("")
	w.stamped(e, "alice", "1 bob\n1 carol\n1 dave")
	w.reportOn(e)
	w.expectEvents("ExceptionApproved")
}

// blind is a reader that may not read.
type blind struct{ client.Reader }

// Get implements client.Reader.
func (blind) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingadmissionpolicies"}, gatecontroller.ExceptionStamp, nil)
}

func TestAPolicyThatTheControllerMayNotSeeIsNotThere(t *testing.T) {
	if stamped, err := gatecontroller.StampedBy(blind{}, gatecontroller.ExceptionStamp)(t.Context()); err != nil || stamped {
		t.Errorf("got %v, %v", stamped, err)
	}
}

// unstamped is what is said as long as nobody stamps who approves.
const unstamped = "the approvals in its annotations do not count, because the policy gate-exception-stamp is missing or cannot be read"

// refusedApproval checks what an exception says of an approval that does not count, and
// that it is told once, on the exception and on its Gate.
func (w *world) refusedApproval(e *v1alpha1.GateException, g *v1alpha1.Gate, refused string) {
	w.Helper()
	w.Events.Take("")
	for range 2 {
		w.reportOn(e)
	}
	w.saysException(e, "Active False WaitingApproval", "Ready True Succeeded")
	if got, want := conditions.GetMessage(e, v1alpha1.ActiveCondition), "; "+refused+"; "+howTo(e); !strings.HasSuffix(got, want) {
		w.Errorf("\ngot  %q\nwant %q", got, want)
	}
	if got := w.Events.Take("ApprovalRefused: "); len(got) != 2 || !strings.Contains(got[0], "Exception is not approved: "+refused) {
		w.Errorf("events %q, want %q", got, refused)
	}
	w.Reconcile(g)
}

func TestAnApprovalThatDoesNotNameWhatIsThereIsToldAndDoesNotCount(t *testing.T) {
	w := newWorld(t)
	w.Unstamped = true
	app := w.NewKustomization("apps", nil)
	g, e := w.twoApprovals()
	read := gate.FormatApproval(e, w.FakeClock.Now())
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(100 * hour) }) // while somebody reads
	w.reportOn(e)
	for _, tc := range []struct{ name, value, because string }{
		{"what was read before the edit", read, "generation 1 is not the current one"},
		{"a time alone", "2026-12-19T12:00:00Z", "it " + (&annotations.FormError{Form: annotations.ApproveException}).Error()},
		{"another time alone", "2026-12-19T12:00:01Z", "it " + (&annotations.FormError{Form: annotations.ApproveException}).Error()},
		{"a generation to come", strings.Replace(read, "generation=1", "generation=3", 1), "generation 3 is not the current one"},
		{"another exception", strings.Replace(read, string(e.UID), string(g.UID), 1), string(g.UID) + " is the UID of another exception"},
	} {
		w.asks(e, tc.value)
		w.refusedApproval(e, g, fmt.Sprintf("the approval %q does not count: %s; %s", tc.value, tc.because, unstamped))
		w.ExpectHeld(app, g)
	}
	w.asks(e, gate.FormatApproval(e, w.FakeClock.Now()))
	w.refusedApproval(e, g, fmt.Sprintf("the approval %q does not count: the API server has not stamped the approver; %s", e.Annotations[v1alpha1.ApproveRequestedAtAnnotation], unstamped))
	w.ExpectHeld(app, g)
}

// Its generation comes, and it is there already.
func TestAnApprovalInAdvanceDoesNotCountOnceItsGenerationIsThere(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g, e := w.twoApprovals()
	next := e.DeepCopy()
	next.Generation++
	w.asks(e, gate.FormatApproval(next, w.FakeClock.Now()))
	w.reportOn(e)
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(100 * hour) })
	w.refusedApproval(e, g, fmt.Sprintf("the approval %q does not count: the API server has not stamped the approver", gate.FormatApproval(e, w.FakeClock.Now())))
	if len(e.Status.Approvals) > 0 {
		t.Errorf("the status has %+v", e.Status.Approvals)
	}
	w.ExpectHeld(app, g)
}

// The annotation of an approval that counted is still there after an edit. The event
// tells that the approval is void, and what is void is not refused as well.
func TestWhatAnEditVoidsIsNotRefusedAsWell(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob")
	w.asks(e, gate.FormatApproval(e, w.FakeClock.Now()))
	w.reportOn(e)
	w.Events.Take("")
	for range 2 {
		w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(100*hour + time.Duration(e.Generation)*hour) })
		w.reportOn(e)
		if got, want := conditions.GetMessage(e, v1alpha1.ActiveCondition), `" does not count: generation 1 is not the current one; `+howTo(e); !strings.HasSuffix(got, want) {
			t.Errorf("\ngot  %q\nwant %q", got, want)
		}
	}
	w.expectEvents("ApprovalsVoided")
}

// The older one has the same name, generation and approvals.
func TestWhatIsDeletedAndCreatedAgainInheritsNoApproval(t *testing.T) {
	w := newWorld(t)
	app := w.NewKustomization("apps", nil)
	g, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.asks(e, gate.FormatApproval(e, w.FakeClock.Now()))
	w.reportOn(e)
	w.Reconcile(g)
	w.ExpectReleased(app, g)
	older := e.DeepCopy()
	w.Must(cluster.Client.Delete(w.Context(), e))
	w.Reconcile(g)
	w.ExpectHeld(app, g)
	w.reportOn(e)
	w.Reconcile(g)
	newer := &v1alpha1.GateException{ // as from a backup, with all that the API server takes
		ObjectMeta: metav1.ObjectMeta{Name: e.Name, Namespace: e.Namespace, Annotations: older.Annotations}, Spec: older.Spec, Status: older.Status,
	}
	w.Must(cluster.Client.Create(w.Context(), newer))
	if newer.Generation != older.Generation || newer.UID == older.UID {
		t.Fatalf("generation %d of %s", newer.Generation, newer.UID)
	}
	w.refusedApproval(newer, g, fmt.Sprintf("the approval %q does not count: %s is the UID of another exception", older.Annotations[v1alpha1.ApproveRequestedAtAnnotation], older.UID))
	if len(newer.Status.Approvals) > 0 {
		t.Errorf("the status has %+v", newer.Status.Approvals)
	}
	w.ExpectHeld(app, g)
}

func TestWhoApprovedWhatIsOverStays(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.reportOn(e)
	w.In(2 * hour)
	w.reportOn(e)
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(1000 * hour) })
	w.reportOn(e)
	if len(e.Status.Approvals) != 2 {
		t.Errorf("approvals %+v", e.Status.Approvals)
	}
}
