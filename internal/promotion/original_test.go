package promotion_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPinStaysWhileSourceCannotBeFetched(t *testing.T) {
	a, b := commit("a"), commit("b")
	const unseen = "GitRepository 'apps' cannot be fetched (GitOperationFailed): newer revisions are unknown until it can."
	fails := func(w *world) *world {
		original := *w.in.Original
		original.Failed, original.Ready = true, &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "GitOperationFailed", Message: "couldn't find remote ref"}
		w.in.Original = &original
		return w.settles()
	}
	for name, tc := range map[string]struct {
		world *world
		want  string
	}{
		"and nothing waits":         {newWorld(whenOpen, a).settles().fetched(), a + " Approved=True/UpToDate Ready=True/Succeeded"},
		"and a revision waits":      {newWorld(whenOpen, a).settles().fetched().closed().arrives(b).settles(), a + " Approved=False/GateClosed Ready=True/Succeeded"},
		"and one needs a yes":       {newWorld(whenApproved, a).settles(), "nothing Approved=False/WaitingApproval Ready=False/WaitingApproval"},
		"and one was approved":      {newWorld(whenApproved, a).settles().approves("alice", a).settles().fetched().arrives(b).closed().settles().approves("alice", b).settles(), a + " Approved=False/GateClosed Ready=True/Succeeded"},
		"and a later one is pinned": {newWorld(whenOpen, a).settles().fetched().closed().arrives(b).settles().open().settles().fetched(), b + " Approved=True/UpToDate Ready=True/Succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			w, before := fails(tc.world), len(tc.world.written)
			if w.is() != tc.want || !strings.Contains(w.message("Approved"), unseen) || len(w.written) != before {
				t.Errorf("got  %s\nwant %s\n%s", w.is(), tc.want, w.message("Approved"))
			}
			w.in.Original.Failed = false
			if w.settles(); strings.Contains(w.message("Approved"), unseen) {
				t.Errorf("it can be fetched again: %s", w.message("Approved"))
			}
		})
	}
}

func TestUnfetchedRevisionOfSuspendedSourceIsNotPinned(t *testing.T) {
	a, b := commit("a"), commit("b")
	for name, tc := range map[string]struct {
		revision  string
		unchanged bool
		want      string
		says      string
	}{
		"what it has":                  {a, true, a + " Approved=True/PinnedInSpec Ready=True/Succeeded", ""},
		"what it has not":              {b, true, "nothing Approved=False/RevisionNotSeen Ready=False/RevisionNotSeen", "it waits until GitRepository 'apps' has it, which is suspended."},
		"what it has by an older spec": {a, false, "nothing Approved=False/SourceNotFound Ready=False/SourceNotFound", "is suspended, and has not been fetched with its current spec"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenApproved, a)
			w.g.Spec.Revision, w.in.Original.Current, w.in.Original.Unchanged = tc.revision, false, tc.unchanged
			w.edits("suspend", true)
			if w.settles(); w.in.Pinned != nil {
				w.fetched()
			}
			if w.is() != tc.want || !strings.Contains(w.message("Approved"), tc.says) {
				t.Errorf("got  %s\nwant %s\n%s", w.is(), tc.want, w.message("Approved"))
			}
			w.in.Original.Current = true
			w.edits("suspend", false)
			w.arrives(b)
			if w.settles().fetched(); !strings.HasPrefix(w.is(), tc.revision+" Approved=True/PinnedInSpec") {
				t.Errorf("it goes on, but: %s", w.is())
			}
		})
	}
}
