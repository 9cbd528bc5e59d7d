package revisions

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// branch moves the head of the branch that the source follows to a commit, or deletes the branch if commit is empty.
func (w *world) branch(commit string) {
	w.Helper()
	w.Must(git.Branch(w.Context(), w.Namespace, "main", commit))
	w.fetch("apps")
}

// unseen is the message of the condition while the source cannot be fetched.
const unseen = "GitRepository 'apps' cannot be fetched (GitOperationFailed): newer revisions are unknown until it can."

func TestBranchDeletedWhilePinned(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{})
	w.arrives("v1")
	first := w.head
	w.isPinned("main@sha1:" + first)
	w.branch("")
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionTrue, "'main@sha1:"+first+"' is the newest revision. "+unseen)
	w.drifts("v1")
	w.fetch("apps-gated")
	w.reports("Ready", metav1.ConditionFalse, "cannot be fetched at 'main@sha1:"+first+"'")
	w.reports("Ready", metav1.ConditionFalse, "its drift is corrected only until source-controller loses its copy")
	w.drifts("v1")
	w.Throughout(patience, "v1 stays", w.stays("v1", "main@sha1:"+first))
	w.branch(first)
	w.fetch("apps-gated")
	w.isPinned("main@sha1:" + first)
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionTrue, "is the newest revision.")
	second := w.commit("v2")
	w.sees(second)
	w.arrives("v2")
}

func TestBranchDeletedWhileWaitingForGate(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{})
	w.arrives("v1")
	first := "main@sha1:" + w.head
	w.closed()
	second := w.commit("v2")
	w.sees(second)
	w.branch("")
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionFalse, "'"+second+"' waits. Held by gate '"+w.Namespace+"/nights'")
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionFalse, unseen)
	w.drifts("v1")
	w.Throughout(patience, "v1 stays", w.stays("v1", first))
	w.branch(w.head)
	w.open()
	w.arrives("v2")
	w.isPinned(second)
}

// The pin moves to the approved revision, and the app keeps running until source-controller has fetched it.
func TestBranchDeletedAfterApproval(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	first := "main@sha1:" + w.head
	w.sees(first)
	w.Must(w.approve(first))
	w.arrives("v1")
	w.closed()
	second := w.commit("v2")
	w.sees(second)
	w.Must(w.approve(second))
	w.eventually("the revision is approved", func(s v1alpha1.GatedSourceStatus) bool { return len(s.Approvals) == 1 })
	w.branch("")
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionFalse, unseen)
	w.drifts("v1")
	w.open()
	w.reports("Ready", metav1.ConditionFalse, "GitRepository 'apps-gated' cannot be fetched at '"+second+"'")
	w.reports("Ready", metav1.ConditionFalse, "The running revision stays '"+first+"'")
	w.drifts("v1")
	w.Throughout(patience, "v1 stays", w.stays("v1", second))
	w.branch(w.head)
	w.fetch("apps-gated")
	w.arrives("v2")
	w.isPinned(second)
	if p := w.g.Status.Promotions; len(p) != 2 || p[0].Revision != second || len(p[0].Approvals) != 1 {
		t.Errorf("promotions: %+v", p)
	}
}

// A force-push removes an approved revision that is not pinned yet. No unapproved revision may replace it.
func TestApprovedCommitDeletedUpstream(t *testing.T) {
	w := newWorld(t)
	w.follow(v1alpha1.GatedSourceSpec{Approvals: &v1alpha1.ApprovalRule{Required: 1}})
	base := w.head
	first := "main@sha1:" + base
	w.sees(first)
	w.Must(w.approve(first))
	w.arrives("v1")
	w.closed()
	gone := w.commit("v2")
	w.sees(gone)
	w.Must(w.approve(gone))
	w.eventually("the revision is approved", func(s v1alpha1.GatedSourceStatus) bool { return len(s.Approvals) == 1 })
	w.head = base
	third := w.commit("v3")
	w.Must(git.Prune(w.Context(), w.Namespace))
	w.sees(third)
	w.open()
	w.reports("Ready", metav1.ConditionFalse, "GitRepository 'apps-gated' cannot be fetched at '"+gone+"'")
	w.drifts("v1")
	w.Throughout(patience, "v1 stays", w.stays("v1", gone))
	w.reports(v1alpha1.ApprovedCondition, metav1.ConditionFalse, "'"+third+"' waits for approval: 0 of 1")
	w.Must(w.approve(third))
	w.arrives("v3")
	w.isPinned(third)
}

// stays returns a function that checks that a text is applied and that the pin has not moved.
func (w *world) stays(text, pinned string) func() error {
	applied := w.applied(text)
	return func() error {
		w.Helper()
		w.Read(w.g)
		if gated := w.g.Status.Pinned; gated == nil || gated.Revision != pinned {
			return fmt.Errorf("the pin is at %+v", gated)
		}
		return applied()
	}
}
