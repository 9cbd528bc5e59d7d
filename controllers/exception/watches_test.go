package exception

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// The exception is enqueued even if the API server does not stamp requesters.
func TestApprovalEnqueuesItsException(t *testing.T) {
	for key, want := range map[string]bool{v1alpha1.ApproveRequestedAtAnnotation: true, v1alpha1.ApproveRequestedByAnnotation: true, v1alpha1.AuthorsAnnotation: false, "a": false} {
		before, after := &v1alpha1.GateException{}, &v1alpha1.GateException{}
		after.Annotations = map[string]string{key: "x"}
		for _, e := range []event.UpdateEvent{{ObjectOld: before, ObjectNew: after}, {ObjectOld: after, ObjectNew: before}} {
			if got := approvalChanged().Update(e); got != want {
				t.Errorf("%s: %t", key, got)
			}
		}
		if approvalChanged().Update(event.UpdateEvent{ObjectOld: after, ObjectNew: after.DeepCopy()}) {
			t.Errorf("%s: it has not changed", key)
		}
	}
}
