package gate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/annotations"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/ledger"
)

// maxApprovals bounds the approvals in the status, maxApprovalName the name of an approver in bytes, and maxApprovalQuote the characters of
// an annotation that a refusal quotes.
const (
	maxApprovals     = 32
	maxApprovalName  = 512
	maxApprovalQuote = 128
)

// FormatApproval returns the value of the annotation that approves the current version of an exception.
func FormatApproval(e *v1alpha1.GateException, at time.Time) string {
	return annotations.ApproveException.Format(annotations.Value{At: at, Keys: keysOfException(e)})
}

// presentOf returns the reference to the current version of an exception, as used in approvals. An exception that was deleted and created
// again has the same generation, but a different UID.
func presentOf(e *v1alpha1.GateException) string {
	return annotations.ApproveException.FormatKeys(keysOfException(e))
}

func keysOfException(e *v1alpha1.GateException) map[string]string {
	return map[string]string{"generation": strconv.FormatInt(e.Generation, 10), "uid": string(e.UID)}
}

// CheckApproval returns an error unless the value of the annotation approves the current version of the exception. The error text completes
// a sentence about the approval.
func CheckApproval(e *v1alpha1.GateException, value string) error {
	v, err := annotations.ApproveException.Parse(value)
	if err != nil {
		return fmt.Errorf("it %w", err)
	}
	switch generation, uid := v.Keys["generation"], v.Keys["uid"]; {
	case uid != string(e.UID):
		return fmt.Errorf(msgOtherUID, uid)
	case generation != fmt.Sprint(e.Generation):
		return fmt.Errorf(msgOtherGeneration, generation)
	}
	return nil
}

// HandleApprovals copies the approvals of the current version from the annotations to the status, because Flux removes annotations that
// kubectl has added to an object in Git. It returns the new approvals, and the approvals that an edit of the spec has voided. If stamped is
// false, the API server does not stamp approvers, and no new approval counts.
func HandleApprovals(e *v1alpha1.GateException, now time.Time, stamped bool) (approved, voided []v1alpha1.Approval) {
	if e.ExpiredBy(now) {
		return nil, nil // the approvers are kept for audit
	}
	e.Status.Approvals = slices.DeleteFunc(slices.Clone(e.Status.Approvals), func(a v1alpha1.Approval) bool {
		if a.Generation != e.Generation {
			voided = append(voided, a)
			return true
		}
		return false
	})
	if !stamped {
		return nil, voided
	}
	for line := range strings.Lines(e.Annotations[v1alpha1.ApproveRequestedByAnnotation]) {
		what, by, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if what != presentOf(e) || !mayApprove(e, by) || len(e.Status.Approvals) == maxApprovals {
			continue
		}
		if !slices.ContainsFunc(e.Status.Approvals, func(a v1alpha1.Approval) bool { return a.ApprovedBy == by }) {
			approval := v1alpha1.Approval{ApprovedBy: by, RecordedAt: metav1.NewTime(now), Generation: e.Generation}
			approved = append(approved, approval)
			e.Status.Approvals = append(e.Status.Approvals, approval)
		}
	}
	return approved, voided
}

// mayApprove returns whether the user may approve an exception. No user may if the authors are unknown.
func mayApprove(e *v1alpha1.GateException, by string) bool {
	authors := authorsOf(e)
	return by != "" && len(by) <= maxApprovalName && len(authors) > 0 && !slices.Contains(authors, by)
}

func authorsOf(e *v1alpha1.GateException) []string {
	return slices.DeleteFunc(strings.Split(e.Annotations[v1alpha1.AuthorsAnnotation], "\n"), func(name string) bool { return name == "" })
}

// approvers returns the users whose approvals of the current version count.
func approvers(e *v1alpha1.GateException) []string {
	var names []string
	for _, a := range e.Status.Approvals {
		if a.Generation == e.Generation && mayApprove(e, a.ApprovedBy) && !slices.Contains(names, a.ApprovedBy) {
			names = append(names, a.ApprovedBy)
		}
	}
	return names
}

// Missing returns the number of approvals that an exception lacks to take effect on a Gate.
func Missing(g *v1alpha1.Gate, e *v1alpha1.GateException) int {
	return max(0, Required(g, e)-len(approvers(e)))
}

// Required returns the number of approvals that an exception needs: none if it has only closePeriods.
func Required(g *v1alpha1.Gate, e *v1alpha1.GateException) int {
	if e.OnlyCloses() && e.Spec.Default == "" {
		return 0
	}
	return g.RequiredExceptionApprovals()
}

// waiting returns the message for an exception that lacks approvals.
func waiting(g *v1alpha1.Gate, e *v1alpha1.GateException) string {
	authors := authorsOf(e)
	if len(authors) == 0 {
		return fmt.Sprintf(msgNotApprovable,
			g.Namespace, g.Name, format.Count(Required(g, e), "approval"))
	}
	names := func(list []string) string { return format.OneLine(strings.Join(list, ", "), ledger.MaxMessage) }
	text := fmt.Sprintf(msgExceptionWaits, g.Namespace, g.Name, format.Count(Required(g, e), "approval"), len(approvers(e)))
	if approvers := approvers(e); len(approvers) > 0 {
		text += " by " + names(approvers)
	}
	return text + msgAuthors + names(authors)
}

// refusedApproval returns why the approval in the annotation of an exception does not count, empty if it counts or there is none.
func refusedApproval(e *v1alpha1.GateException) string {
	value, ok := e.Annotations[v1alpha1.ApproveRequestedAtAnnotation]
	if !ok {
		return ""
	}
	err := CheckApproval(e, value)
	if err == nil && !strings.Contains("\n"+e.Annotations[v1alpha1.ApproveRequestedByAnnotation], "\n"+presentOf(e)+" ") {
		err = errors.New(msgNotStamped)
	}
	if err == nil {
		return ""
	}
	return fmt.Sprintf(msgApprovalRefused, maxApprovalQuote, value, err)
}

// howToApprove returns the command that approves the current version of an exception. It is empty if its authors are unknown, because then
// no user may approve it.
func howToApprove(e *v1alpha1.GateException) string {
	if len(authorsOf(e)) == 0 {
		return ""
	}
	return fmt.Sprintf(msgHowToApprove,
		e.Generation, e.Namespace, e.Name, v1alpha1.ApproveRequestedAtAnnotation, presentOf(e))
}
