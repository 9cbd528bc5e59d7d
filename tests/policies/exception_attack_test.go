package policies

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fluxmeta "github.com/fluxcd/pkg/apis/meta"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// guarded creates a closed Gate whose exceptions need approvals.
func (w *world) guarded(approvals int32) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{
		ObjectMeta: metav1.ObjectMeta{Name: "production", Namespace: w.Namespace},
		Spec:       v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Approvals: &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: approvals}}},
	}
	w.Create(g)
	w.decided(g, metav1.ConditionFalse)
	return g
}

// opens is a spec that opens the Gate now, for hours.
func opens(hours int) string {
	return fmt.Sprintf(`{"timeZone":"UTC","validFrom":%q,"validUntil":%q,"openPeriods":[{"name":"always","start":"00:00","end":"24:00"}]}`,
		stamp(time.Now().Add(-time.Hour)), stamp(time.Now().Add(time.Duration(hours)*time.Hour)))
}

// reported checks what the controller, asked again, makes of an exception and of
// its Gate, and who it says has approved.
func (w *world) reported(g *v1alpha1.Gate, name, reason string, approvers ...string) {
	w.Helper()
	token := time.Now().Format(time.RFC3339Nano)
	w.Must(cluster.Client.Patch(w.Context(), w.exception(name), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+fluxmeta.ReconcileRequestAnnotation+`":"`+token+`"}}}`))))
	e := &v1alpha1.GateException{}
	w.Eventually("the controller has looked at "+name, func() error {
		if e = w.exception(name); e.Status.LastHandledReconcileAt != token || e.Status.ObservedGeneration != e.Generation {
			return fmt.Errorf("status %+v", e.Status)
		}
		return nil
	})
	var by []string
	for _, a := range e.Status.Approvals {
		by = append(by, a.ApprovedBy)
	}
	opened := metav1.ConditionFalse
	if reason == v1alpha1.InForceReason {
		opened = metav1.ConditionTrue
	}
	active := meta.FindStatusCondition(e.Status.Conditions, v1alpha1.ActiveCondition)
	if active == nil || active.Status != opened || active.Reason != reason || !slices.Equal(by, approvers) {
		w.Errorf("want %s and approvals by %q, status is %+v", reason, approvers, e.Status)
	}
	w.decided(g, opened)
}

func TestAnExceptionOpensOnceEnoughOthersHaveApprovedIt(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(2)
	ona, alice, bob := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover), w.as("bob", exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	for range 3 { // one person, however often
		w.allowed(alice, w.approval()...)
		w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "alice")
	}
	w.allowed(alice, "annotate", "gtex", "hotfix", approveAt+"-")
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "alice")
	w.allowed(bob, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice", "bob")
}

// Flux takes the annotations of kubectl away while nobody notes the approval.
func TestAnApprovalOutlivesFluxWhileTheControllerIsDown(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	flux, alice := w.as("flux", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(flux, "hotfix", opens(1), nil)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	start := w.stopController()
	w.allowed(alice, w.approval()...)
	w.allowed(flux, "patch", "gtex", "hotfix", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations/approve.gate.fluxcd.io~1requestedAt"},`+
		`{"op":"remove","path":"/metadata/annotations/approve.gate.fluxcd.io~1requestedBy"}]`)
	w.stampedException("hotfix", "flux", "1 alice")
	if n := len(w.exception("hotfix").Status.Approvals); n > 0 {
		t.Errorf("%d approvals are noted while the controller is down", n)
	}
	start()
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

func TestAnEditVoidsApprovals(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	edith := w.as("edith", exceptionEditor, viewer, exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	w.allowed(ona, "label", "gtex", "hotfix", "a=b")
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")

	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":`+opens(48)+`}`)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(ona, "annotate", "--overwrite", "gtex", "hotfix", approveBy+"="+w.lines("2 alice"))
	w.allowed(ona, ttl("1h")...) // and back
	w.allowed(ona, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"spec":{"ttlAfterExpired":null}}`)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)

	// An approver who edits is an author.
	w.allowed(edith, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "edith")
	w.allowed(edith, ttl("2h")...)
	w.refusedException(edith, "hotfix", "user edith wrote gate exception", w.approval()...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
}

func TestWhatIsDeletedAndCreatedAgainIsNotApproved(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	ona, alice := w.as("ona", exceptionEditor, viewer), w.as("alice", exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.allowed(alice, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "alice")
	lines := w.exception("hotfix").Annotations[approveBy]
	copied := w.allowed(ona, "get", "gtex", "hotfix", "-o=yaml")

	w.allowed(ona, "delete", "gtex", "hotfix")
	w.decided(g, metav1.ConditionFalse)
	w.allowed(ona, "apply", "--server-side", "-f", w.except("hotfix", opens(1), map[string]string{authors: "bob", approveBy: lines}))
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)

	// A backup: with its approval it is refused, without it is not approved.
	w.allowed(ona, "delete", "gtex", "hotfix")
	var restored []string
	for _, line := range strings.Split(copied, "\n") {
		if trimmed := strings.TrimSpace(line); !strings.HasPrefix(trimmed, "resourceVersion:") && !strings.HasPrefix(trimmed, "uid:") {
			restored = append(restored, line)
		}
	}
	text := strings.Join(restored, "\n")
	out, err := ona.kubectl(w.Context(), w.Namespace, "create", "-f", w.file(text))
	if err == nil || !strings.Contains(out, "while creating it") {
		t.Errorf("restored with its approval: %s, %v", out, err)
	}
	w.allowed(ona, "create", "-f", w.file(strings.Replace(text, approveAt+":", "a:", 1)))
	w.stampedException("hotfix", "ona", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
}

func TestForgeriesApproveNothing(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	beth := w.as("beth", exceptionEditor, exceptionApprover)
	w.born(beth, "hotfix", opens(1), map[string]string{authors: "alice", approveBy: "1 alice"})
	for _, args := range [][]string{
		{"annotate", "--overwrite", "gtex", "hotfix", authors + "=alice", approveBy + "=" + w.lines("1 alice")},
		{"patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"` + approveBy + `":"` + strings.ReplaceAll(w.lines("1 alice\n1 bob"), "\n", `\n`) + `"}},"status":{"approvals":[{"approvedBy":"alice","recordedAt":"2026-11-21T16:41:57Z","generation":1}]}}`},
		{"replace", "-f", w.except("hotfix", opens(1), map[string]string{authors: "alice", approveBy: w.lines("1 alice")})},
		{"apply", "--server-side", "--force-conflicts", "--field-manager=gating-controller", "-f", w.except("hotfix", opens(2), map[string]string{authors: "alice", approveBy: w.lines("3 alice")})},
	} {
		w.allowed(beth, args...)
		w.refusedException(beth, "hotfix", "user beth wrote gate exception "+w.Namespace+"/hotfix", w.approval()...)
		w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	}
	if e := w.exception("hotfix"); e.Annotations[authors] != "beth" || e.Annotations[approveBy] != "" {
		t.Errorf("annotations %v", e.Annotations)
	}
}

// The names in the annotations are read as they are written: to the end of the
// line, blanks and digits included.
func TestOddNamesAreOnePersonEach(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(3)
	ona := w.as("ona", exceptionEditor, viewer)
	bob, odd, blank := w.as("bob", exceptionApprover), w.as("1 bob", exceptionApprover), w.as("bob ", exceptionApprover)
	w.born(ona, "hotfix", opens(1), nil)
	w.allowed(odd, w.approval()...)
	w.allowed(odd, w.approval()...)
	w.allowed(w.as("x\n1 carl", exceptionApprover), w.approval()...)
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason, "1 bob", "x 1 carl")
	w.allowed(bob, w.approval()...)
	w.allowed(blank, w.approval()...)
	w.reported(g, "hotfix", v1alpha1.InForceReason, "1 bob", "x 1 carl", "bob", "bob ")
}

// Nobody knows who wrote what was there before the policies.
func TestAnExceptionFromBeforeThePoliciesCountsForNoGateThatAsksForApprovals(t *testing.T) {
	w := newWorld(t)
	g := w.guarded(1)
	beth := w.as("beth", exceptionEditor, exceptionApprover)
	unstamped(w, func() { w.bornUnstamped(beth, opens(1)) })
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
	w.refusedException(beth, "hotfix", "its authors are unknown", w.approval()...)
	w.allowed(beth, "patch", "gtex", "hotfix", "--type=merge", "-p", `{"metadata":{"annotations":{"`+authors+`":"alice","`+approveBy+`":"`+w.lines("1 alice")+`"}}}`)
	w.stampedException("hotfix", "", "")
	w.reported(g, "hotfix", v1alpha1.WaitingApprovalReason)
}
