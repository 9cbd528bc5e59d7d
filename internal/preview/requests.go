package preview

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// applyingUser stands for who asks with a manifest: with config/policies the API server writes that over any other name.
const applyingUser = "whoever applies it"

// applyRequests returns a copy of a Gate after handling the requests in its annotations, and these requests. A request that needs approvals waits,
// as with config/policies: no annotation approves it here or makes it an emergency.
func (s *Set) applyRequests(g *v1alpha1.Gate, now time.Time) (*v1alpha1.Gate, []ledger.Request) {
	g = g.DeepCopy()
	if g.RequiredApprovals() > 0 {
		delete(g.Annotations, v1alpha1.OpenEmergencyAnnotation)
		delete(g.Annotations, v1alpha1.ApproveRequestedByAnnotation)
		if !s.keepsStatus(g) {
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, v1alpha1.OpenRequestedByAnnotation, applyingUser)
		}
	}
	return g, gate.ApplyRequests(g, ledger.Stamped, now)
}

// waiting returns a doubt if open requests for a Gate wait for approval. It is none of the doubts in calendars: these give away who deploys when,
// but nobody's name.
func (s *Set) waiting(g *v1alpha1.Gate, r Range) []Fault {
	if g.RequiredApprovals() == 0 {
		return nil
	}
	asked, _ := s.applyRequests(g, r.From)
	if text := ledger.WaitingForApproval(asked, r.From); text != "" {
		return []Fault{s.fault(g, "spec.approvals", text)}
	}
	return nil
}
