package ledger

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/format"
)

// Stamps describes whether the API server stamps the names of requesters and approvers.
type Stamps int

const (
	// Unstamped means that clients can write any name. No approval counts.
	Unstamped Stamps = iota
	// Stamped means that the API server writes the names, as config/policies defines.
	Stamped
	// StampsUnknown means that the controller cannot tell. Open requests that need approvals are deferred, or refused if they are in a line of
	// v1alpha1.UnhandledAnnotation.
	StampsUnknown
)

// NeedsStamps returns whether the annotations of a Gate have a new request or approval whose handling depends on Stamps.
func NeedsStamps(g *v1alpha1.Gate) bool {
	l := Read(g)
	return l.required > 0 && (len(l.pending(v1alpha1.RequestOpen, time.Time{})) > 0 || l.hasNewApprovals())
}

// hasNewApprovals returns whether the annotations of a Gate have approvals that are not in its status.
func (l *Ledger) hasNewApprovals() bool {
	return slices.ContainsFunc(slices.Concat(l.waiting, l.planned), func(r v1alpha1.AcceptedRequest) bool { return len(l.newApprovals(&r)) > 0 })
}

// Uncounted returns a message if there are approvals that do not count because the API server has not stamped them, empty if there are
// none.
func (l *Ledger) Uncounted() string {
	if !l.hasNewApprovals() {
		return ""
	}
	return msgUncounted
}

// approvable returns whether a request can be approved.
func approvable(r *v1alpha1.AcceptedRequest) bool {
	return r.Action == v1alpha1.RequestOpen && (r.State == v1alpha1.RequestWaiting || r.State == v1alpha1.RequestPlanned) && r.Stamped && r.RequestedBy != "" && !r.Emergency
}

// newApprovals returns the approvers of a waiting or planned request that are not in its status, without duplicates. The requester does not
// count.
func (l *Ledger) newApprovals(r *v1alpha1.AcceptedRequest) (names []string) {
	if l.required == 0 || !approvable(r) {
		return nil
	}
	for line := range strings.Lines(l.gate.Annotations[v1alpha1.ApproveRequestedByAnnotation]) {
		what, by, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if by != format.OneLine(by, MaxRequestedBy) {
			continue // OneLine changes the requester in the same way, so the names cannot be compared
		}
		known := slices.ContainsFunc(r.Approvals, func(a v1alpha1.RequestApproval) bool { return a.ApprovedBy == by })
		if what == requestName(l.gate, r) && by != "" && by != r.RequestedBy && !known && !slices.Contains(names, by) && len(r.Approvals)+len(names) < maxRequestApprovals {
			names = append(names, by)
		}
	}
	return names
}

// maxRequestApprovals bounds the approvals that are stored for a request. No Gate can require more.
const maxRequestApprovals = 10

// requestName returns the text by which an approval refers to a request. A Gate accepts no two open requests at the same instant, and a
// Gate that was deleted and created again has a different UID.
func requestName(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) string {
	return annotations.ApproveRequest.FormatKeys(requestKeys(g, r))
}

// requestKeys returns the keys that identify a request in an approval.
func requestKeys(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) map[string]string {
	return map[string]string{"request": r.AcceptedAt.UTC().Format(metav1.RFC3339Micro), "uid": string(g.UID)}
}

// FormatRequestApproval returns the value of the annotation that approves a request for a Gate.
func FormatRequestApproval(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest, at time.Time) string {
	return annotations.ApproveRequest.Format(annotations.Value{At: at, Keys: requestKeys(g, r)})
}
