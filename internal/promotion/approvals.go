package promotion

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
)

// maxApprovals bounds the approvals in the status. maxBy and maxReason bound the texts of an approval, in bytes.
const (
	maxApprovals = 100
	maxBy        = 512
	maxReason    = 256
)

// stampOf returns the prefix of lines in which the API server has stamped an approval of this round. It contains the UID of the object, so
// that the line does not count if it is copied to another object.
func stampOf(g *v1alpha1.GatedSource) string {
	return annotations.ApproveRevision.FormatKeys(keysOf(g, ""))
}

// keysOf returns the keys of an approval of a revision in this round.
func keysOf(g *v1alpha1.GatedSource, revision string) map[string]string {
	return map[string]string{"round": strconv.FormatInt(g.Status.Round, 10), "uid": string(g.UID), "revision": revision}
}

// FormatApproval returns the value of the annotation that approves a revision in this round.
func FormatApproval(g *v1alpha1.GatedSource, revision string, at time.Time) string {
	return annotations.ApproveRevision.Format(annotations.Value{At: at, Keys: keysOf(g, revision)})
}

// approve copies the approvals of this round from the annotation to the status, because Flux removes annotations that kubectl has added to
// an object in Git.
func (d *decision) approve() {
	s := &d.g.Status
	if !d.Stamped || d.g.RequiredApprovals() == 0 {
		return
	}
	var stamped []v1alpha1.RevisionApproval
	for line := range strings.Lines(d.g.Annotations[v1alpha1.ApproveRequestedByAnnotation]) {
		if a, ok := d.read(strings.TrimSuffix(line, "\n")); ok && !slices.ContainsFunc(stamped, a.isSame) && len(stamped) < maxApprovals {
			if i := slices.IndexFunc(s.Approvals, a.isSame); i >= 0 {
				a.RevisionApproval = s.Approvals[i]
			} else {
				d.step.Approved = append(d.step.Approved, a.RevisionApproval)
			}
			stamped = append(stamped, a.RevisionApproval)
		}
	}
	// If a user approves again, the approval moves to the end.
	gone := slices.DeleteFunc(slices.Clone(s.Approvals), func(a v1alpha1.RevisionApproval) bool { return slices.ContainsFunc(stamped, approval{a}.isSame) })
	s.Approvals = slices.Concat(gone, stamped)
	s.Approvals = s.Approvals[max(0, len(s.Approvals)-maxApprovals):]
}

// HasNewApprovals returns whether the annotations have approvals that are not in the status, or a value that was not stamped.
func HasNewApprovals(g *v1alpha1.GatedSource) bool {
	if g.RequiredApprovals() == 0 {
		return false
	}
	d := &decision{g: g}
	for line := range strings.Lines(g.Annotations[v1alpha1.ApproveRequestedByAnnotation]) {
		if a, ok := d.read(strings.TrimSuffix(line, "\n")); ok && !slices.ContainsFunc(g.Status.Approvals, a.isSame) {
			return true
		}
	}
	return g.Annotations[v1alpha1.ApproveRequestedAtAnnotation] != ""
}

// approval is the approval of one user.
type approval struct{ v1alpha1.RevisionApproval }

// isSame returns whether both approvals are for the same revision and by the same user.
func (a approval) isSame(other v1alpha1.RevisionApproval) bool {
	return a.Revision == other.Revision && a.ApprovedBy == other.ApprovedBy
}

// read parses a line that the API server has stamped. It returns false if the line is not an approval of this round.
func (d *decision) read(line string) (approval, bool) {
	stamped, ok := strings.CutPrefix(line, stampOf(d.g))
	revision, who, _ := strings.Cut(stamped, " ")
	by, reason, _ := strings.Cut(who, "\t")
	if !ok || by == "" || len(by) > maxBy || !slices.Contains(approvableRevisions(d.g), revision) {
		return approval{}, false
	}
	reason = strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
	return approval{v1alpha1.RevisionApproval{Revision: revision, ApprovedBy: by, Message: reason, RecordedAt: metav1.NewTime(d.Now)}}, true
}

// approvers returns the users who approved a revision in this round.
func approvers(g *v1alpha1.GatedSource, revision string) (names []string) {
	for _, a := range g.Status.Approvals {
		if a.Revision == revision && !slices.Contains(names, a.ApprovedBy) {
			names = append(names, a.ApprovedBy)
		}
	}
	return names
}

// approved returns the most recently approved revision that has enough approvals, empty if there is none.
func approved(g *v1alpha1.GatedSource) string {
	for _, a := range slices.Backward(g.Status.Approvals) {
		if len(approvers(g, a.Revision)) >= g.RequiredApprovals() {
			return a.Revision
		}
	}
	return ""
}

// refused returns why the value of the annotation does not count, empty if it counts or there is none.
func (d *decision) refused() string {
	value, asked := d.g.Annotations[v1alpha1.ApproveRequestedAtAnnotation]
	switch {
	case !asked && d.Stamped, d.g.RequiredApprovals() == 0 && !asked:
		return ""
	case !d.Stamped && d.g.RequiredApprovals() > 0:
		return msgUncounted
	}
	cause := msgNotStamped
	if _, err := annotations.ApproveRevision.Parse(value); err != nil {
		cause = "it " + err.Error()
	}
	return fmt.Sprintf(msgApprovalRefused, value, cause)
}
