package verdict

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// maxExplained is the maximum number of Gates for which a message includes the reasons and the opening times. If there are more Gates, the
// message has only their names.
const maxExplained = 4

// exemptions maps exemptions to the reasons of Approved=True for objects that are not held although a Gate is closed.
var exemptions = map[target.Exemption]string{
	target.Imminent:    v1alpha1.ExpiryImminentReason,
	target.Needless:    v1alpha1.RenewalWithinMarginReason,
	target.Unsupported: v1alpha1.UnsupportedVersionReason,
}

// IsExemption returns whether a condition Approved reports that an object is exempt from a hold.
func IsExemption(condition *metav1.Condition) bool {
	if condition == nil || condition.Status != metav1.ConditionTrue {
		return false
	}
	for _, reason := range exemptions {
		if condition.Reason == reason {
			return true
		}
	}
	return false
}

// Approved returns the condition Approved of a target after its step, nil if the target must not have it. was is the current condition, nil
// if there is none. LastTransitionTime in the result is a lower bound for the time of the condition, zero if there is no bound. A target
// counts as resumed only if it was resumed after all of its Gates had closed. Otherwise, it is held again.
func Approved(was *metav1.Condition, v Verdict, step Step, plan target.Plan, now time.Time) *metav1.Condition {
	switch step.Outcome {
	case Held:
		return held(was, v, step.Pass, now)
	case Passing:
		return approved(v1alpha1.PassGrantedReason, step.Pass.GrantedMessage(v.Names))
	case Resumed:
		return approved(v1alpha1.ResumedReason, resumed(v.Names))
	case Exempt:
		return notHeld(was, v, plan)
	case SuspendedByOthers:
		if (v.closed || len(v.Initial) > 0) && (isFalse(was) || was != nil && was.Reason == v1alpha1.PassGrantedReason) {
			return approved(v1alpha1.ResumedReason, msgSuspendedByOthers)
		}
	case Free:
	}
	switch {
	case was == nil, was.Status == metav1.ConditionTrue && (was.Reason == v1alpha1.GateOpenedReason || step.Outcome == SuspendedByOthers):
		return was
	case v.Waits, was.Status == metav1.ConditionTrue && len(step.Names) > 0:
		return was // a Gate has not decided yet, or its name is on the target
	}
	return approved(v1alpha1.GateOpenedReason, v.Released())
}

func approved(reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(was *metav1.Condition) bool {
	return was != nil && was.Status == metav1.ConditionFalse
}

// isUndecided returns whether a Gate has not decided yet, or whether the reason why it is closed is not in its status yet.
func (g Gate) isUndecided() bool {
	return g.Effect == Undecided || g.Effect == Closed && !g.isPersisted()
}

// held returns the condition of a held target. It returns was while a Gate is undecided, or if no holder can explain the hold. Gates of
// other shards cannot explain it, and suspended Gates need not if was already reports the hold.
func held(was *metav1.Condition, v Verdict, pass Pass, now time.Time) *metav1.Condition {
	condition := &metav1.Condition{Type: v1alpha1.ApprovedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.GateClosedReason}
	if reason, message := Refusal(v.Holders); reason != "" {
		condition.Reason, condition.Message = reason, message
		return condition
	}
	explains := func(g Gate) bool { return g.Effect != OtherShard && (g.Effect != Suspended || !isFalse(was)) }
	if slices.ContainsFunc(v.Holders, Gate.isUndecided) || len(v.Holders) > 0 && !slices.ContainsFunc(v.Holders, explains) {
		return was
	}
	condition.Message = Explain(v.Holders, now) + pass.result()
	for _, g := range v.Holders {
		if g.Object != nil && g.isPersisted() && g.Object.Status.LastTransition != nil {
			condition.LastTransitionTime = later(condition.LastTransitionTime, g.Object.Status.LastTransition.At)
		}
	}
	return condition
}

func later(a, b metav1.Time) metav1.Time {
	if a.Before(&b) {
		return b
	}
	return a
}

// notHeld returns the condition of an exempt target. A target that was reported as resumed is still reported as resumed.
func notHeld(was *metav1.Condition, v Verdict, plan target.Plan) *metav1.Condition {
	switch {
	case len(v.Initial) > 0:
		return approved(v1alpha1.InitialReconciliationReason, v.InitialMessage())
	case plan.Exempt == target.Activates:
		return nil // the condition Activated is reported instead
	case was != nil && was.Reason == v1alpha1.ResumedReason, exemptions[plan.Exempt] == "":
		return was
	}
	return approved(exemptions[plan.Exempt], fmt.Sprintf(msgNotHeld, are(v.Names)))
}

// Explain returns a message that lists the Gates that hold a target, with the opening time and the reason of each.
func Explain(holders []Gate, now time.Time) string {
	if len(holders) == 0 {
		return msgHeldNoName
	}
	return msgHeldBy + by(holders, now) + "."
}

// ExplainAudit returns a message for a target that a Gate with mode Audit would hold, with the opening time and the reason.
func ExplainAudit(g Gate, now time.Time) string {
	return msgWouldBeHeldBy + by([]Gate{g}, now) + msgAuditMode
}

// by lists the Gates that hold a target, with the times of their openings and the reasons, as part of a sentence. See maxExplained.
func by(holders []Gate, now time.Time) string {
	parts := make([]string, len(holders))
	for i, g := range holders {
		parts[i] = "'" + g.Name + "'"
		if len(holders) <= maxExplained {
			parts[i] += g.until()
		}
		if why := g.why(now); why != "" && len(holders) > 1 && len(holders) <= maxExplained {
			parts[i] += " (" + why + ")"
		}
	}
	if len(parts) > 1 {
		return "gates " + strings.Join(parts, ", ")
	}
	if why := holders[0].why(now); why != "" {
		return fmt.Sprintf(msgGateBecause, parts[0], why)
	}
	return "gate " + parts[0]
}

// Refusal returns the reason and the message for a target that is held because it refers to a Gate that does not exist or that it must not
// refer to. Both are empty if it refers to no such Gate.
func Refusal(holders []Gate) (reason, message string) {
	for _, g := range holders {
		switch g.Effect {
		case Missing:
			return v1alpha1.GateNotFoundReason, missing(g.Name)
		case Denied:
			return v1alpha1.AccessDeniedReason, denied(g.Name)
		default:
		}
	}
	return "", ""
}

func missing(name string) string {
	if strings.HasSuffix(name, "/"+target.NoGate) {
		return fmt.Sprintf(msgInvalidGates,
			v1alpha1.GatesAnnotation, target.MaxNamedGates)
	}
	return fmt.Sprintf(msgMissingGate, name, v1alpha1.GatesAnnotation)
}

func denied(name string) string {
	return fmt.Sprintf(msgDeniedGate+
		msgDeniedGateRemedy, name, v1alpha1.GatesAnnotation)
}

// Released returns the message for a target that no Gate holds. It lists the open Gates and the Gates with mode Audit.
func (v Verdict) Released() string {
	var parts []string
	if len(v.Open) > 0 {
		parts = append(parts, are(v.Open)+" open")
	}
	if len(v.Audits) > 0 {
		parts = append(parts, have(namesOf(v.Audits))+" mode Audit")
	}
	if len(parts) == 0 {
		return msgNotGoverned
	}
	return fmt.Sprintf(msgReleased, strings.Join(parts, ", and "))
}

// InitialMessage returns the message for a target whose closed Gates allow the initial reconciliation.
func (v Verdict) InitialMessage() string {
	return fmt.Sprintf(msgInitial, v.Initial[0].Initial.Format(time.RFC3339), ClosedAre(namesOf(v.Initial)))
}

// ClosedAre returns the names of Gates followed by "is closed" or "are closed".
func ClosedAre(names []string) string { return are(names) + " closed" }

// are returns the names of Gates followed by "is" or "are".
func are(names []string) string { return gates(names, "is", "are") }

func have(names []string) string { return gates(names, "has", "have") }

func gates(names []string, one, many string) string {
	if len(names) == 1 {
		return fmt.Sprintf("gate '%s' %s", names[0], one)
	}
	return fmt.Sprintf("gates '%s' %s", strings.Join(names, "', '"), many)
}

func namesOf(gates []Gate) []string {
	names := make([]string, len(gates))
	for i, g := range gates {
		names[i] = g.Name
	}
	return names
}

// resumed returns the message for a manually resumed target, with the Gates that permit it.
func resumed(names []string) string {
	if len(names) == 1 {
		return fmt.Sprintf(msgResumedOne, names[0])
	}
	return fmt.Sprintf(msgResumedMany, strings.Join(names, "', '"))
}
