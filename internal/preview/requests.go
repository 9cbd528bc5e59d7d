package preview

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// applyingUser is the requester of a request in a manifest, because with config/policies, the API server replaces any other name.
const applyingUser = "the user who applies it"

// applyRequests returns a copy of a Gate after the requests in its annotations have been handled, and these requests. A request that
// needs approvals waits, as with config/policies, because annotations in manifests cannot approve the request or make it an emergency.
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

// waiting returns a warning if open requests wait for approval. Calendars omit the warning, because it contains names of users.
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
