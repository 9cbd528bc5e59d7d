package controllers

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// twoApprovals creates a closed Gate that asks for two approvals, a target of it,
// and an exception by alice that opens it for an hour.
func (w *world) twoApprovals() (*v1alpha1.Gate, *v1alpha1.GateException) {
	w.Helper()
	g := w.closedGate("production", named("apps"))
	w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Exceptions = &v1alpha1.ExceptionPolicy{Approvals: 2} })
	e := w.exception("hotfix", v1alpha1.ExceptionExtend, 0, hour)
	w.stamped(e, "alice", "")
	w.reportOn(e)
	w.reconcile(g)
	return g, e
}

func TestAnExceptionWaitsUntilEnoughOthersHaveApprovedIt(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g, e := w.twoApprovals()
	w.expectHeld(app, g)
	for _, step := range []struct{ approvals, says string }{
		{"", "there are 0; its authors cannot approve it: alice"},
		{"1 bob", "there are 1 by bob; its authors cannot approve it: alice"},
		{"1 bob\n1 bob", "there are 1 by bob; its authors cannot approve it: alice"},
		{"1 alice\n1 bob", "there are 1 by bob; its authors cannot approve it: alice"},
		{"0 carol\n2 carol\ncarol\n1 ", "there are 1 by bob; its authors cannot approve it: alice"},
	} {
		w.stamped(e, "alice", step.approvals)
		w.reportOn(e)
		w.saysException(e, v1alpha1.ExceptionPending, "Active False WaitingApproval", "Ready True Succeeded")
		want := fmt.Sprintf("Exception waits for approval: gate '%s' asks for 2, %s", key(g), step.says)
		if got := conditions.GetMessage(e, v1alpha1.ActiveCondition); got != want {
			t.Errorf("%q:\ngot  %q\nwant %q", step.approvals, got, want)
		}
		w.reconcile(g)
		w.expectHeld(app, g)
	}
	w.in(time.Minute)
	w.events.take("")
	w.stamped(e, "alice", "1 carol") // bob's is in the status: Flux may strip it
	w.reportOn(e)
	w.saysException(e, v1alpha1.ExceptionActive, "Active True InForce", "Ready True Succeeded")
	if got, want := len(w.events.take("Exception approved by carol")), 2; got != want {
		t.Errorf("%d events, want %d", got, want)
	}
	a := e.Status.Approvals
	if len(a) != 2 || a[0].By != "bob" || !a[0].At.Time.Equal(start) || a[1].By != "carol" || !a[1].At.Time.Equal(start.Add(time.Minute)) {
		t.Errorf("the status has %+v", a)
	}
	w.reconcile(g)
	w.expectReleased(app, g)
}

func TestAnEditVoidsApprovals(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.reportOn(e)
	w.reconcile(g)
	w.expectReleased(app, g)
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.ValidUntil = at(100 * hour) })
	w.reconcile(g) // before the report: the gate looks itself
	w.expectHeld(app, g)
	w.events.take("")
	w.reportOn(e)
	w.saysException(e, v1alpha1.ExceptionPending, "Active False WaitingApproval", "Ready True Succeeded")
	if len(e.Status.Approvals) > 0 {
		t.Errorf("the status has %+v", e.Status.Approvals)
	}
	if got := w.events.take("is void: the exception was edited since"); len(got) != 4 {
		t.Errorf("events %q", got)
	}
	w.reconcile(g)
	w.expectHeld(app, g)
}

func TestNobodyApprovesWhatNobodyKnowsTheAuthorOf(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g, e := w.twoApprovals()
	w.stamped(e, "", "1 bob\n1 carol")
	w.reportOn(e)
	w.reconcile(g)
	w.expectHeld(app, g)
	w.saysException(e, v1alpha1.ExceptionPending, "Active False WaitingApproval", "Ready True Succeeded")
}

func TestAGateThatBeginsToAskForApprovalsStopsWhatHasNone(t *testing.T) {
	w := newWorld(t)
	app := w.kustomization("apps", nil)
	g := w.closedGate("production", named("apps"))
	e := w.exception("hotfix", v1alpha1.ExceptionExtend, 0, hour)
	w.reportOn(e)
	w.reconcile(g)
	w.expectUntouched(app)
	w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Exceptions = &v1alpha1.ExceptionPolicy{Approvals: 1} })
	w.reconcile(g)
	w.expectHeld(app, g)
	w.events.take("")
	w.reportOn(e)
	w.saysException(e, v1alpha1.ExceptionPending, "Active False WaitingApproval", "Ready True Succeeded")
	if got := w.events.take("ExceptionInterrupted: "); len(got) != 2 {
		t.Errorf("events %q", got)
	}
}

func TestApprovalsThatNobodyStampsAreWorthNothing(t *testing.T) {
	w := newWorld(t)
	w.unstamped = true
	app := w.kustomization("apps", nil)
	g, e := w.twoApprovals()
	w.stamped(e, "x", "1 bob\n1 carol")
	w.reportOn(e)
	w.reconcile(g)
	w.expectHeld(app, g)
	w.saysException(e, v1alpha1.ExceptionPending, "Active False WaitingApproval", "Ready True Succeeded")
	if got := conditions.GetMessage(e, v1alpha1.ActiveCondition); !strings.HasSuffix(got, "; the approvals in its annotations do not count, because the policy gate-exception-stamp is not there or out of sight") {
		t.Errorf("it says %q", got)
	}
	if stamped, err := StampedBy(cluster.Client)(w.ctx); err != nil || stamped {
		t.Errorf("this API server stamps: %v, %v", stamped, err)
	}
}

func TestWhoApprovedWhatIsOverStays(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.reportOn(e)
	w.in(2 * hour)
	w.reportOn(e)
	w.editException(e, func(e *v1alpha1.GateException) { e.Spec.TTLAfterExpired = duration(1000 * hour) })
	w.reportOn(e)
	if len(e.Status.Approvals) != 2 {
		t.Errorf("approvals %+v", e.Status.Approvals)
	}
}

func TestACacheThatIsBehindForgetsNoApproval(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	stale := e.DeepCopy()
	w.reportOn(e)
	w.stamped(e, "alice", "")
	w.events.take("")
	r := w.reporter()
	stale.Annotations[v1alpha1.ApproveRequestedByAnnotation] = "1 bob"
	r.Client = behind{w.Client, stale}
	result, err := r.Reconcile(w.ctx, requestFor(e))
	if err != nil || result.RequeueAfter != staleRetry {
		t.Errorf("got %v, %v", result, err)
	}
	w.must(w.readException(e))
	if len(e.Status.Approvals) != 2 {
		t.Errorf("the status has %+v", e.Status.Approvals)
	}
	w.expectEvents()
}

func TestOneMoreApprovalActivatesNothingAnew(t *testing.T) {
	w := newWorld(t)
	_, e := w.twoApprovals()
	w.stamped(e, "alice", "1 bob\n1 carol")
	w.reportOn(e)
	w.events.take("")
	w.stamped(e, "alice", "1 bob\n1 carol\n1 dave")
	w.reportOn(e)
	w.expectEvents("Approved")
}

// blind is a reader that may not read.
type blind struct{ client.Reader }

// Get implements client.Reader.
func (blind) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "validatingadmissionpolicies"}, stampPolicy, nil)
}

func TestAPolicyThatTheControllerMayNotSeeIsNotThere(t *testing.T) {
	if stamped, err := StampedBy(blind{})(t.Context()); err != nil || stamped {
		t.Errorf("got %v, %v", stamped, err)
	}
}
