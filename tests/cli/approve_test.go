package cli

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestApproveNeedsPolicies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := frozen()
	spec.Approvals = &v1alpha1.GateApprovals{Exceptions: &v1alpha1.ApprovalRule{Required: 1}}
	w.Decided(w.Gate("production", spec))
	w.expect(w.gate("exception", "production", "--for=1h", "--name=hotfix", "--apply"), 0, "", " is created, it needs 1 approval by others: kubectl gate approve exception/hotfix -n "+w.Namespace+"\n")
	w.expect(w.gate("approve", "exception/hotfix"), exitError, "  authors    unknown", "error: its authors are unknown, because it was created without config/policies")
	e := &v1alpha1.GateException{}
	e.Namespace, e.Name = w.Namespace, "hotfix"
	if w.Read(e); e.Annotations[v1alpha1.ApproveRequestedAtAnnotation] != "" {
		t.Errorf("the approval was written anyway: %v", e.Annotations)
	}
	w.Must(w.Merge(e, `{"metadata":{"annotations":{%q:"mallory"}}}`, v1alpha1.AuthorsAnnotation))
	w.expect(w.gate("approve", "exception/hotfix"), exitIncomplete, "", "error: the controller does not count this: the approvals in its annotations do not count, because the policy gate-exception-stamp is missing or cannot be read")
}

func TestIneffectiveExceptionIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := frozen()
	spec.Suspend = true
	w.Gate("production", spec)
	w.expect(w.gate("exception", "production", "--for=1h", "--name=hotfix", "--apply"), exitIncomplete, "", "warning: the gate is suspended, so exceptions have no effect")
}

func TestIneffectiveExceptionsAreNotReportedInForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := frozen()
	spec.ClosePeriods[0].Override = v1alpha1.OverrideDeny
	w.Decided(w.Gate("production", spec))
	stays := "the gate stays closed: close period freeze (override: Deny)\n"
	if got := w.gate("exception", "production", "--for=2h", "--name=in-vain", "--apply"); got != (output{"", "error: gateexception " + w.Namespace + "/in-vain is created, but " + stays, exitIncomplete}) {
		t.Errorf("%+v", got)
	}
	w.expect(w.gate("exception", "production", "--from=4h", "--for=2h"), 0, "kind: GateException", "warning: it has no effect: "+stays)
}

func TestApproveNamesTheRoleOfApprovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.expect(w.as("approves-nothing").gate("approve", "exception/hotfix"), exitError, "", `that needs the verb "get", which the ClusterRole gate-exception-approver has`)
}
