package target

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/activation"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// closedGates are the Gates that a Certificate is waiting for, sorted by name.
type closedGates []verdict.Gate

func (c closedGates) names() []string {
	names := make([]string, len(c))
	for i, g := range c {
		names[i] = g.Name
	}
	return names
}

// String returns the names of the Gates and when they open.
func (c closedGates) String() string {
	all := make([]string, len(c))
	for i, g := range c {
		all[i] = "'" + g.Name + "'"
		if at, zone, ok := g.Opening(); ok {
			all[i] += fmt.Sprintf(msgOpensAt, at.Format(time.RFC3339), zone)
		}
	}
	switch len(all) {
	case 0:
		return msgUnknownGate
	case 1:
		return "gate " + all[0]
	}
	return "gates " + strings.Join(all, ", ")
}

// when returns when the certificate may be activated: while all Gates that govern the Certificate are open, or within the safety
// margin before it expires.
func (a *activationRun) when(ctx context.Context) (activation.When, error) {
	gates, err := a.Gates.Live(ctx, a.obj, a.Clock.Now())
	if err != nil {
		return activation.When{}, err
	}
	gates = slices.DeleteFunc(gates, func(g verdict.Gate) bool { return !g.Covers() })
	slices.SortFunc(gates, func(a, b verdict.Gate) int { return strings.Compare(a.Name, b.Name) })
	a.closed = slices.DeleteFunc(slices.Clone(gates), verdict.Gate.LetsActivate)
	terms := verdict.Terms(gates)
	return activation.When{Open: len(gates) > 0 && len(a.closed) == 0, Margin: terms.Margin, Strict: terms.Strict}, nil
}

// activatedCondition returns the condition Activated of a Certificate.
func activatedCondition(names activation.Names, d activation.Decision, closed closedGates) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ActivatedCondition, Status: metav1.ConditionFalse}
	ends := ""
	if d.Live != nil {
		ends = fmt.Sprintf(msgInUse, d.Live.End())
	}
	switch d.Outcome {
	case activation.Activated:
		condition.Status, condition.Reason = metav1.ConditionTrue, v1alpha1.ActivatedReason
		condition.Message = fmt.Sprintf(msgIsActivated, names.Live, ends)
	case activation.RolledBack:
		condition.Reason = v1alpha1.RolledBackReason
		condition.Message = fmt.Sprintf(msgRolledBack, names.Live, ends)
	case activation.NotIssued:
		condition.Reason = v1alpha1.NotIssuedReason
		condition.Message = fmt.Sprintf(msgNotIssued, names.Staged)
	case activation.NotYetValid:
		condition.Reason = v1alpha1.NotYetValidReason
		condition.Message = fmt.Sprintf(msgNotYetValid, d.Staged.Serial, d.Staged.NotBefore.UTC().Format(time.RFC3339), ends)
	case activation.Closed:
		condition.Reason = v1alpha1.GateClosedReason
		condition.Message = fmt.Sprintf(msgWaits, d.Staged.Serial, closed, ends)
		if !d.Recheck.IsZero() {
			condition.Message += fmt.Sprintf(msgReplacedBy, d.Recheck.UTC().Format(time.RFC3339))
		}
	default:
		condition.Reason = v1alpha1.ActivationFailedReason
		condition.Message = fmt.Sprintf(msgNotActivated, names.Live, d.Message+"."+ends)
	}
	return condition
}
