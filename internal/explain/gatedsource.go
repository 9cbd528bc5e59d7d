package explain

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Approvals are the approvals of the waiting revision.
type Approvals struct {
	// Has is the number of users who have approved the revision, and Needs is the required number.
	Has   int `json:"has"`
	Needs int `json:"needs"`
}

// gatedSource converts an object to a GatedSource. It returns nil if the object is of another kind.
func gatedSource(obj *unstructured.Unstructured) *v1alpha1.GatedSource {
	if !target.Pins(obj.GroupVersionKind().GroupKind()) {
		return nil
	}
	g := &v1alpha1.GatedSource{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, g); err != nil {
		return nil // the object is from another release, with other fields
	}
	return g
}

// NeedsApproval returns whether an object is a GatedSource whose revision waits for approvals. It may also be held by Gates.
func NeedsApproval(obj *unstructured.Unstructured) bool {
	g := gatedSource(obj)
	return g != nil && approvals(g) != nil
}

// Pinned returns the pinned source of a GatedSource. It returns false for other objects.
func Pinned(obj *unstructured.Unstructured) (Ref, bool) {
	g := gatedSource(obj)
	if g == nil {
		return Ref{}, false
	}
	return Ref{sourceVersion, g.Spec.SourceRef.Kind, g.Namespace, g.PinnedName()}, true
}

// pending sets the waiting revision to the one that a GatedSource has not promoted yet, according to its status.
func (w *Waiting) pending(g *v1alpha1.GatedSource) {
	w.Reason = NothingNew
	if p := g.Status.Pending; p != nil {
		w.Reason, w.Waits, w.Since, w.Approvals = NewRevision, p.Revision, g.Status.WaitingSince.DeepCopy(), approvals(g)
	}
}

// rollbackNote returns a sentence about the rollback that has pinned the revision of a GatedSource, or about a request that was refused, empty
// if there is none.
func rollbackNote(obj *unstructured.Unstructured) string {
	g := gatedSource(obj)
	if g == nil || g.Status.Rollback == nil {
		return ""
	}
	r, by := g.Status.Rollback, ""
	if r.RequestedBy != "" {
		by = " by " + r.RequestedBy
	}
	if r.Message != "" {
		by += ": " + r.Message
	}
	switch pinned := g.Status.Pinned; {
	case r.Refused != "":
		return fmt.Sprintf("The rollback to %s, requested at %s%s, was refused: %s.", r.Revision, r.RequestedAt.UTC().Format(time.RFC3339), by, r.Refused)
	case pinned != nil && pinned.Reason == v1alpha1.RolledBackReason:
		return fmt.Sprintf("It was rolled back from %s to %s, requested at %s%s.", r.From, r.Revision, r.RequestedAt.UTC().Format(time.RFC3339), by)
	}
	return ""
}

// approvals returns the approvals of the waiting revision, nil if no revision is waiting for approval.
func approvals(g *v1alpha1.GatedSource) *Approvals {
	c := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ApprovedCondition)
	if g.Status.Pending == nil || c == nil || c.Reason != v1alpha1.WaitingApprovalReason {
		return nil
	}
	by := map[string]bool{}
	for _, a := range g.Status.Approvals {
		if a.Revision == g.Status.Pending.Revision {
			by[a.ApprovedBy] = true
		}
	}
	return &Approvals{len(by), g.RequiredApprovals()}
}
