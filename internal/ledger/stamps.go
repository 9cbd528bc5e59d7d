package ledger

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/sentence"
)

// Stamps is what is known of the names of those who request and approve.
type Stamps int

const (
	// Unstamped names are what people claim: none of their approvals counts.
	Unstamped Stamps = iota
	// Stamped names are from the API server, as config/policies has it.
	Stamped
	// StampsUnknown means that nobody could be asked just now. Requests that depend on it are left for later.
	StampsUnknown
)

// NeedsStamps returns whether something new in the annotations of a Gate depends on who has stamped it.
func NeedsStamps(g *v1alpha1.Gate) bool {
	l := Read(g)
	return l.required > 0 && (len(l.pending(v1alpha1.RequestOpen, time.Time{})) > 0 || l.hasNewApprovals())
}

// hasNewApprovals returns whether the annotations of a Gate have approvals that its status does not have.
func (l *Ledger) hasNewApprovals() bool {
	return slices.ContainsFunc(slices.Concat(l.waiting, l.planned), func(r v1alpha1.AcceptedRequest) bool { return len(l.newApprovals(&r)) > 0 })
}

// Uncounted says that there are approvals which do not count, because the API server has not stamped them. It is empty if there are none.
func (l *Ledger) Uncounted() string {
	if !l.hasNewApprovals() {
		return ""
	}
	return "the approvals in its annotations do not count, because the policy gate-approval is missing or cannot be read"
}

// approvable returns whether others can approve a request.
func approvable(r *v1alpha1.AcceptedRequest) bool {
	return r.Action == v1alpha1.RequestOpen && (r.State == v1alpha1.RequestWaiting || r.State == v1alpha1.RequestPlanned) && r.Stamped && r.RequestedBy != "" && !r.Emergency
}

// newApprovals returns who has approved a request that waits or is planned, and is not noted yet: everybody once, and never who made it.
func (l *Ledger) newApprovals(r *v1alpha1.AcceptedRequest) (names []string) {
	if l.required == 0 || !approvable(r) {
		return nil
	}
	for line := range strings.Lines(l.gate.Annotations[v1alpha1.ApproveRequestedByAnnotation]) {
		what, by, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if by != sentence.OneLine(by, MaxRequestedBy) {
			continue // the name of the requester is not kept as it is, either
		}
		known := slices.ContainsFunc(r.Approvals, func(a v1alpha1.RequestApproval) bool { return a.ApprovedBy == by })
		if what == nameOfRequest(l.gate, r) && by != "" && by != r.RequestedBy && !known && !slices.Contains(names, by) && len(r.Approvals)+len(names) < maxRequestApprovals {
			names = append(names, by)
		}
	}
	return names
}

// maxRequestApprovals is how many approvals of a request are kept: as many as a Gate can ask for.
const maxRequestApprovals = 10

// nameOfRequest returns how an approval names a request. A Gate accepts no two requests at the same instant, and one that was deleted and
// created again has another uid.
func nameOfRequest(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) string {
	return annotations.ApproveRequest.FormatKeys(keysOfRequest(g, r))
}

func keysOfRequest(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest) map[string]string {
	return map[string]string{"request": r.AcceptedAt.UTC().Format(metav1.RFC3339Micro), "uid": string(g.UID)}
}

// FormatRequestApproval returns the value of the annotation that approves a request for a Gate.
func FormatRequestApproval(g *v1alpha1.Gate, r *v1alpha1.AcceptedRequest, at time.Time) string {
	return annotations.ApproveRequest.Format(annotations.Value{At: at, Keys: keysOfRequest(g, r)})
}
