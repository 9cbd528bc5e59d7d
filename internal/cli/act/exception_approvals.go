package act

import (
	"fmt"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/describe"
	"github.com/fluxcd/gating-controller/internal/cli/term"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func exceptionTitle(e *v1alpha1.GateException) string {
	return "gateexception " + e.Namespace + "/" + e.Name
}

// descriptionAnnotation is the Kubernetes annotation for the purpose of an object.
const descriptionAnnotation = "kubernetes.io/description"

// exceptionAuthors returns the authors of an exception, as recorded by the API server.
func exceptionAuthors(e *v1alpha1.GateException) []string {
	return strings.FieldsFunc(e.Annotations[v1alpha1.AuthorsAnnotation], func(r rune) bool { return r == '\n' })
}

// exceptionApprovers returns the users who have approved the current generation of an exception.
func exceptionApprovers(e *v1alpha1.GateException) (names []string) {
	for _, a := range e.Status.Approvals {
		if a.Generation == e.Generation {
			names = append(names, a.ApprovedBy)
		}
	}
	return names
}

// describeApprovals describes how many of the required approvals an exception has, and the state of the exception. g is nil if the Gate
// could not be read.
func describeApprovals(e *v1alpha1.GateException, g *v1alpha1.Gate, now time.Time) string {
	has, wants := len(exceptionApprovers(e)), -1
	if g != nil {
		wants = gate.Required(g, e)
	}
	text := fmt.Sprintf("%d of %d approvals", has, wants)
	switch {
	case wants == 0:
		text = "which it does not need"
	case wants < 0 && has == 1:
		text = "1 approval"
	case wants < 0:
		text = fmt.Sprintf("%d approvals", has)
	}
	if has < wants {
		return text + fmt.Sprintf(", waits for %d more", wants-has)
	}
	text += ", " + describeValidity(e, now)
	if wants < 0 && describe.Condition(e.Status.Conditions, v1alpha1.ActiveCondition).Reason == v1alpha1.WaitingApprovalReason {
		text += ", if its gate requires no more"
	}
	return text
}

// describeValidity describes whether an exception is planned, in force or over, as if no approvals were missing.
func describeValidity(e *v1alpha1.GateException, now time.Time) string {
	active := describe.Condition(e.Status.Conditions, v1alpha1.ActiveCondition)
	from, until := term.FormatUntil(e.Spec.ValidFrom.Time, now), term.FormatUntil(e.Spec.ValidUntil.Time, now)
	switch active.Reason {
	case v1alpha1.InForceReason:
		return "in force until " + until
	case v1alpha1.PendingReason, v1alpha1.WaitingApprovalReason: // callers report missing approvals
		if e.Spec.ValidFrom.After(now) {
			return "begins " + from + " and is over " + until
		}
		return "in force until " + until
	}
	return active.Message
}
