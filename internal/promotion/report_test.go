package promotion_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/promotion"
)

func TestRefusedApprovalIsReported(t *testing.T) {
	const unstamped, refused = "do not count, because the policy gated-source-stamp is missing", "does not count: the API server has not stamped the approver."
	for name, tc := range map[string]struct {
		required             int32
		stamped, isRequested bool
		want                 string
	}{
		"none is required or requested":         {whenOpen, false, false, ""},
		"none is required, one is requested":    {whenOpen, false, true, refused},
		"one is required, without policy":       {whenApproved, false, false, unstamped},
		"one is required, none is requested":    {whenApproved, true, false, ""},
		"one is required, the stamp is missing": {whenApproved, true, true, refused},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(tc.required, commit("a"))
			w.in.Stamped, w.g.UID = tc.stamped, "6d2c1e2f-0f5e-4c1b-9d0a-3b1f0c7a8e55"
			if tc.isRequested {
				w.g.Annotations = map[string]string{v1alpha1.ApproveRequestedAtAnnotation: promotion.FormatApproval(w.g, commit("a"), start)}
			}
			if got := w.settles().message("Approved"); !strings.Contains(got, tc.want) || strings.Contains(got, "not count") != (tc.want != "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestReadyFollowsPinnedSource(t *testing.T) {
	ready := func(status metav1.ConditionStatus) *metav1.Condition {
		return &metav1.Condition{Type: "Ready", Status: status, Reason: "Succeeded"}
	}
	a := commit("a")
	for name, tc := range map[string]struct {
		current  bool
		revision string
		ready    *metav1.Condition
		want     string
	}{
		"fetched":                   {true, a, ready(metav1.ConditionTrue), "Ready=True/Succeeded"},
		"fetched with another spec": {false, a, ready(metav1.ConditionTrue), "Ready=Unknown/Progressing"},
		"at another revision":       {true, commit("b"), ready(metav1.ConditionTrue), "Ready=Unknown/Progressing"},
		"at no revision":            {true, "", ready(metav1.ConditionTrue), "Ready=Unknown/Progressing"},
		"not ready":                 {true, a, ready(metav1.ConditionFalse), "Ready=Unknown/Progressing"},
		"without a condition":       {true, a, nil, "Ready=Unknown/Progressing"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(whenOpen, a).settles().fetched()
			w.in.Pinned.Current, w.in.Pinned.Revision, w.in.Pinned.Ready = tc.current, tc.revision, tc.ready
			if w.settles(); !strings.HasSuffix(w.is(), tc.want) {
				t.Errorf("got %s, want %s", w.is(), tc.want)
			}
		})
	}
}

func TestApprovedKeepsReasonUntilGatesDecide(t *testing.T) {
	w := newWorld(whenOpen, commit("a")).settles().closed().arrives(commit("b")).settles()
	before := w.message("Approved")
	w.in.Gates = promotion.Gates{}
	if w.settles(); w.message("Approved") != before {
		t.Errorf("got %q, want %q", w.message("Approved"), before)
	}
}

func TestDeletedPinnedSourceIsNotRestored(t *testing.T) {
	w := newWorld(whenOpen, commit("a")).settles()
	w.in.Pinned.Spec["ignore"], w.in.Pinned.Deleted = "*", true
	if w.settles(); len(w.written) != 1 {
		t.Errorf("written: %v", w.written)
	}
}

func TestWaitingStartsAtFirstNewerRevision(t *testing.T) {
	a, b, c := commit("a"), commit("b"), commit("c")
	w := newWorld(whenApproved, a).settles().arrives(b).settles().arrives(c).settles().approves("alice", a).settles()
	if s := w.g.Status; s.Waiting != 2 || s.Seen[1].Revision != b || !s.WaitingSince.Equal(&s.Seen[1].RecordedAt) {
		t.Errorf("%d wait since %s: %+v", s.Waiting, s.WaitingSince, s.Seen)
	}
}

func TestUnfetchablePinnedSourceReportsEffect(t *testing.T) {
	w := newWorld(whenOpen, commit("a")).settles().fetched()
	w.in.Pinned.Failed, w.in.Pinned.Ready = true, &metav1.Condition{Type: "Ready", Status: metav1.ConditionFalse, Reason: "GitOperationFailed", Message: "object not found"}
	w.settles()
	for revision, want := range map[string]string{
		commit("a"): "its drift is corrected only until source-controller loses its copy", "": "its drift is not corrected", commit("b"): "The running revision stays '" + commit("b"),
	} {
		w.in.Pinned.Revision = revision
		if w.settles(); !strings.HasSuffix(w.is(), "Ready=False/GitOperationFailed") || !strings.Contains(w.message("Ready"), "object not found") || !strings.Contains(w.message("Ready"), want) {
			t.Errorf("%s: %s", w.is(), w.message("Ready"))
		}
	}
}
