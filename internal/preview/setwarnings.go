package preview

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

// allWarnings returns warnings about probable mistakes, and about reasons why a cluster may differ from the preview.
func (s *Set) allWarnings(r Range) (warnings []Fault) {
	from := r.From
	warnings = append(warnings, s.overlaid...)
	for _, g := range s.gates {
		warnings = append(warnings, s.gateWarnings(g, r)...)
		warnings = append(warnings, s.warnings(g, r)...)
	}
	for _, e := range s.exceptions {
		warnings = append(warnings, s.exceptionWarnings(e, from)...)
		if !e.ExpiredBy(from) {
			warnings = append(warnings, s.ambiguous(e, timetable.AmbiguitiesOfException(e))...)
		}
	}
	return append(warnings, s.annotated...)
}

// gateWarnings returns the warnings about a Gate.
func (s *Set) gateWarnings(g *v1alpha1.Gate, r Range) (warnings []Fault) {
	warnings = append(warnings, s.ambiguous(g, timetable.Ambiguities(g))...)
	warnings = append(warnings, s.ambiguous(g, s.snapshot(g, r).Warnings())...)
	if n := len(g.Spec.DependsOn); n > 0 {
		warnings = append(warnings, s.fault(g, "spec.dependsOn",
			fmt.Sprintf("the gate is closed while a dependency is not ready, the preview treats all %d as ready", n)))
	}
	for _, i := range s.heldBootstrap(g) {
		warnings = append(warnings, s.fault(g, fmt.Sprintf("spec.targets[%d]", i), fmt.Sprintf(
			"it holds the %s from which Flux applies the cluster: while the gate is closed, no commit arrives, not even one that opens it. Select by a label that object flux-system does not have",
			g.Spec.Targets[i].Kind)))
	}
	if g.Audits() {
		warnings = append(warnings, s.fault(g, "spec.mode", "the gate has mode Audit: it holds nothing while it is closed"))
	}
	if g.Spec.Suspend && s.keepsStatus(g) {
		warnings = append(warnings, s.fault(g, "spec.suspend", "the gate keeps its state while it is suspended, the preview treats it as resumed"))
	}
	if slices.ContainsFunc(s.exceptions, func(e *v1alpha1.GateException) bool {
		return gate.IsOf(g, e) && !s.isKnown(e) && !e.ExpiredBy(r.From) && gate.Required(g, e) > 0
	}) {
		warnings = append(warnings, s.fault(g, "spec.approvals",
			fmt.Sprintf("the exceptions of the gate need approval (required: %d), the preview treats them as approved", g.RequiredExceptionApprovals())))
	}
	return warnings
}

// heldBootstrap returns the indexes of the entries in spec.targets that hold the objects from which Flux applies the cluster. It returns
// none if the Gate is not allowed to refer to their namespace.
func (s *Set) heldBootstrap(g *v1alpha1.Gate) []int {
	if reaches := s.targets.in().Reaches; reaches != nil && !reaches(g.Namespace, gate.Bootstrap) {
		return nil
	}
	return gate.HoldsBootstrap(g)
}

// shortGap bounds the length of a gap between close periods that is probably a mistake, because a period cannot end at 24:00.
const shortGap = time.Minute

// gaps returns a warning about the first short gap between close periods in which a Gate is open.
func (s *Set) gaps(g *v1alpha1.Gate, intervals []Interval) []Fault {
	for i := 1; i+1 < len(intervals); i++ {
		before, gap, after := intervals[i-1].last(), &intervals[i], intervals[i+1].Cause
		if gap.State != string(v1alpha1.StateOpened) || gap.Until.Sub(gap.From.Time) > shortGap || before.Reason != v1alpha1.ClosePeriodReason || after.Reason != v1alpha1.ClosePeriodReason {
			continue
		}
		return []Fault{s.fault(g, "spec.closePeriods", fmt.Sprintf("the gate is open for %s between close periods %s and %s, from %s: end the first when the other starts, such as at 00:00",
			gap.Until.Sub(gap.From.Time), before.By(), after.By(), gap.From.UTC().Format(time.RFC3339)))}
	}
	return nil
}

// ambiguous returns a warning about each schedule of an object that users often misread.
func (s *Set) ambiguous(obj metav1.Object, schedules []timetable.Ambiguity) (warnings []Fault) {
	for _, a := range schedules {
		warnings = append(warnings, s.fault(obj, a.Field, a.Message))
	}
	return warnings
}

// modes returns a warning about each Gate that had mode Audit in the set before, and now holds targets.
func (s *Set) modes(before *Set) (warnings []Fault) {
	for _, g := range s.gates {
		i := slices.IndexFunc(before.gates, func(old *v1alpha1.Gate) bool { return nameOf(old) == nameOf(g) })
		if i >= 0 && before.gates[i].Audits() && !g.Audits() {
			warnings = append(warnings, s.fault(g, "spec.mode", "the gate had mode Audit: from now on it holds its targets while it is closed"))
		}
	}
	return warnings
}

// exceptionWarnings returns the warnings about an exception.
func (s *Set) exceptionWarnings(e *v1alpha1.GateException, from time.Time) (warnings []Fault) {
	i := slices.IndexFunc(s.gates, func(g *v1alpha1.Gate) bool { return gate.IsOf(g, e) })
	switch {
	case i < 0 && s.isKnown(e):
		return nil // the cluster itself reports this
	case i < 0:
		where := "is in none of the files"
		if s.fromCluster {
			where += ", and not in the cluster"
		}
		return []Fault{s.fault(e, "spec.gateRef.name", fmt.Sprintf("gate '%s/%s' %s", e.Namespace, e.Spec.GateRef.Name, where))}
	}
	g := s.gates[i]
	warnings = s.warnException(e, from)
	if n := gate.Missing(g, e); n > 0 && s.isKnown(e) {
		if e.ExpiredBy(from) {
			return nil
		}
		return []Fault{s.fault(e, "", fmt.Sprintf("the exception lacks %d of %d approvals, the preview does not count it", n, gate.Required(g, e)))}
	}
	counting := s.counting(g)
	own := counting[slices.IndexFunc(counting, func(c *v1alpha1.GateException) bool { return c.Name == e.Name })]
	for _, winner := range gate.Overlapping(own, WithoutApprovals(g), counting, from) {
		why := "which is newer and takes precedence"
		if winner.CreationTimestamp.Equal(&own.CreationTimestamp) {
			why = "which is first by name and takes precedence here (in a cluster, the one created later does),"
		}
		warnings = append(warnings, s.fault(e, "", fmt.Sprintf("overlaps exception '%s', %s from %s until %s", winner.Name, why,
			winner.Spec.ValidFrom.UTC().Format(time.RFC3339), winner.Spec.ValidUntil.UTC().Format(time.RFC3339))))
	}
	return warnings
}
