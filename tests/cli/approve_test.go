package cli

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestWithoutThePoliciesNobodyApproves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := frozen()
	spec.Exceptions = &v1alpha1.ExceptionPolicy{Approvals: 1}
	w.Decided(w.Gate("production", spec))
	w.expect(w.gate("except", "production", "--for=1h", "--name=hotfix", "--apply"), 0, "", "waits for approval by others")
	w.expect(w.gate("approve", "hotfix"), exitError, "  authors    nobody knows", "error: nobody knows who wrote it, because it was created without config/policies")
	e := &v1alpha1.GateException{}
	e.Namespace, e.Name = w.Namespace, "hotfix"
	if w.Read(e); e.Annotations[v1alpha1.ApproveRequestedAtAnnotation] != "" {
		t.Errorf("it was written all the same: %v", e.Annotations)
	}
	w.Must(w.Merge(e, `{"metadata":{"annotations":{%q:"mallory"}}}`, v1alpha1.AuthorsAnnotation))
	w.expect(w.gate("approve", "hotfix"), exitIncomplete, "", "error: the controller does not count this: the approvals in its annotations do not count, because the policy gate-exception-stamp is not there")
}

func TestAnExceptionThatCannotApplyIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	spec := frozen()
	spec.Suspend = true
	w.Gate("production", spec)
	w.expect(w.gate("except", "production", "--for=1h", "--name=hotfix", "--apply"), exitIncomplete, "", "warning: the gate is suspended, and no exception changes that")
}
