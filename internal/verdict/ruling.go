package verdict

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Ruling holds all decisions about a target at an instant.
type Ruling struct {
	Object   *target.Object
	Observed Observed
	Verdict  Verdict
	// Terms are the terms of the holders, set only for Certificates. Plan is the plan for these terms.
	Terms target.Terms
	Plan  target.Plan
	// Step is the next write to the target. It is final if Needs is empty.
	Step Step
	// Needs lists the facts that must be read before the ruling can be final.
	Needs Facts
	// Wait is the reason why the release waits. Queues lists the Gates whose slots it waits for, and Slots lists the Gates whose slots
	// the write takes.
	Wait          Wait
	Queues, Slots []Gate
	// Report is true if the conditions of the target must be set now. After a write, the next ruling sets them.
	Report bool
	// Now is the instant of the ruling. Recheck is the time when the target must be reconciled again, zero for never.
	Now, Recheck time.Time
}

// Would returns the ruling that would apply if a Gate with mode Audit had mode Enforce, and the other Gates kept their
// effects.
func (r Ruling) Would(audits Gate, gates []Gate) Ruling {
	gates = slices.Clone(gates)
	for i := range gates {
		if g := &gates[i]; g.Name == audits.Name {
			g.Effect, g.Governs, g.Audits = g.Would, true, false
		}
	}
	return Rule(Situation{Object: r.Object, Gates: gates, Definition: r.Terms.Definition, Now: r.Now})
}

// maxAnnotations bounds the total size of an object's annotations in bytes, as TotalAnnotationSizeLimitB in
// k8s.io/apimachinery/pkg/api/validation does.
const maxAnnotations = 256 << 10

// fitting changes the step if its annotations would not fit on the target. A target that must be held is held anyway, with the names that
// are already on it, or without names.
func fitting(obj *target.Object, o Observed, step Step, plan target.Plan) Step {
	if !step.Write || fits(obj, step.Names, step.Pass) {
		return step
	}
	if step.Outcome == Passing {
		step.Outcome, step.Hold = Held, true // a pass that is not recorded must end
	}
	step.Pass = o.Pass.brief() // at most as long as the current value, and keeps the request from counting again
	if step.Ends.State != PassEnded {
		step.Ends = step.Pass
	}
	if o.Request != nil {
		step.Refused = msgPassNoSpace
	}
	if !step.Hold {
		return step
	}
	if fits(obj, step.Names, step.Pass) {
		step.Write = o.State != target.Held || !slices.Equal(o.HeldBy, step.Names) || plan.Stale
		return step
	}
	step.Names = slices.DeleteFunc(slices.Clone(step.Names), func(name string) bool { return !slices.Contains(o.HeldBy, name) })
	if !fits(obj, step.Names, step.Pass) {
		step.Names = nil
	}
	step.Write = o.State != target.Held || !slices.Equal(o.HeldBy, step.Names) || plan.Stale
	return step
}

// fits returns whether the names and the record of a pass fit into the annotations of a target.
func fits(obj *target.Object, names []string, pass Pass) bool {
	ours := map[string]string{}
	maps.Copy(ours, pass.annotations())
	if len(names) > 0 {
		ours[v1alpha1.HeldByAnnotation] = target.FormatHeldBy(names)
	}
	return Fits(obj, ours)
}

// Fits returns whether a target has space for our annotations, instead of those that it has.
func Fits(obj *target.Object, ours map[string]string) bool {
	before := []string{v1alpha1.HeldByAnnotation, v1alpha1.PassAnnotation}
	before = slices.AppendSeq(before, maps.Keys(target.SuspendedBy(obj, Us, []string{""})))
	size := 0
	for name, value := range ours {
		size += len(name) + len(value)
	}
	for name, value := range obj.GetAnnotations() {
		if !slices.Contains(before, name) {
			size += len(name) + len(value)
		}
	}
	return size <= maxAnnotations
}

// Releases returns whether the step releases a held target.
func (r Ruling) Releases() bool {
	return r.Step.Write && !r.Step.Hold && r.Step.Outcome != Passing && r.Observed.State != target.Free && r.Observed.State != target.SuspendedByOthers
}

// Dropped returns the Gates whose names the step removes from the target.
func (r Ruling) Dropped() []string {
	return slices.DeleteFunc(slices.Clone(r.Observed.HeldBy), func(name string) bool { return slices.Contains(r.Step.Names, name) })
}

// isLate returns whether a Certificate that waits for a slot must be renewed now, and otherwise when it must be renewed, zero for never. An
// open Gate is never strict.
func (r *Ruling) isLate(g Gate) (bool, time.Time) {
	if !renews(r.Object) {
		return false, time.Time{}
	}
	terms := Terms([]Gate{g})
	terms.Strict, terms.Definition, terms.Ignored = false, r.Terms.Definition, r.Terms.Ignored
	plan := target.Of(&r.Object.Unstructured).Plan(r.Object, r.Observed.State, terms, r.Now)
	return plan.Exempt != target.NotExempt, plan.Recheck
}

// renews returns whether a target is renewed before it expires, like a Certificate.
func renews(obj *target.Object) bool {
	_, ok := target.As[target.Renewer](&obj.Unstructured)
	return ok
}

// Activates returns whether Gates govern the activation of a Certificate instead of its renewal.
func Activates(obj *target.Object) bool {
	_, ok := target.As[target.Activator](&obj.Unstructured)
	return ok && obj.GetAnnotations()[v1alpha1.ActivateIntoAnnotation] != ""
}

// isWindowIgnored returns whether the conditions report that cert-manager misread the renewal window that the controller set.
func isWindowIgnored(obj *target.Object) bool {
	condition := meta.FindStatusCondition(obj.GetConditions(), v1alpha1.RenewalConfigInvalidCondition)
	return condition != nil && condition.Reason == v1alpha1.WindowIgnoredReason
}

// isNewlyIgnored returns whether cert-manager has misread the renewal window, but the conditions do not report that yet.
func (r *Ruling) isNewlyIgnored() bool {
	return r.Step.Hold && r.Step.Write && r.Observed.State == target.Held && r.Plan.Ignored && !isWindowIgnored(r.Object)
}

// ApprovedOf returns the condition Approved of a target, nil if it has none.
func ApprovedOf(obj *target.Object) *metav1.Condition {
	return meta.FindStatusCondition(obj.GetConditions(), v1alpha1.ApprovedCondition)
}

// ConditionTypes lists the types of the conditions that the controller sets on targets.
var ConditionTypes = []string{
	v1alpha1.ActivatedCondition, v1alpha1.ApprovedCondition, v1alpha1.RenewalDeferredCondition, v1alpha1.RenewalDisabledCondition,
	v1alpha1.RenewalWindowBypassedCondition, v1alpha1.RenewalConfigInvalidCondition,
}

// Conditions returns all conditions that the controller sets on a target after its step. activated is the condition Activated, nil if it
// must not be set.
func (r Ruling) Conditions(activated *metav1.Condition) []metav1.Condition {
	var list []metav1.Condition
	add := func(condition *metav1.Condition) {
		if condition != nil {
			list = append(list, *condition)
		}
	}
	add(activated)
	if r.Step.Outcome == Exempt && r.Plan.Exempt == target.NotReady {
		for _, name := range ConditionTypes {
			if name != v1alpha1.ActivatedCondition {
				add(meta.FindStatusCondition(r.Object.GetConditions(), name)) // keep it until the certificate is issued
			}
		}
		return list
	}
	add(Approved(ApprovedOf(r.Object), r.Verdict, r.Step, r.Plan, r.Now))
	if renews(r.Object) {
		list = append(list, r.Renewal()...)
	}
	return list
}
