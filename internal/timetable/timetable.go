// Package timetable compiles the periods of Gates and GateExceptions, and the calendars that they refer to. It is pure.
package timetable

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Timetable holds the compiled periods of a Gate and of its exceptions. It is safe for concurrent use.
type Timetable struct {
	// Errors lists the errors of the spec. A timetable with errors has no plan.
	Errors field.ErrorList
	// Broken lists the calendars that cannot be read. Their close periods cover all time, and their open periods cover nothing.
	Broken []BrokenCalendar
	// Warnings are about calendars: events that do not count although they may have been meant to, and other possible mistakes.
	Warnings []Ambiguity

	config schedule.Config
	// exceptions compiles each exception on first use, because most exceptions have ended.
	exceptions map[string]func() compiledException
}

// compiledException is a compiled exception with its errors.
type compiledException struct {
	schedule.Exception
	errs field.ErrorList
}

// Compile returns the timetable of a Gate with its calendars and the exceptions that may apply to it. A missing calendar counts as broken.
func Compile(g *v1alpha1.Gate, calendars Calendars, exceptions []*v1alpha1.GateException) *Timetable {
	c := &compiler{gate: g, calendars: calendars}
	t := &Timetable{config: c.config(&g.Spec), exceptions: map[string]func() compiledException{}}
	t.Errors, t.Broken, t.Warnings = c.errs, c.broken, c.ambiguous
	for _, e := range exceptions {
		t.exceptions[keyOf(e)] = sync.OnceValue(func() compiledException {
			rules, errs := exceptionRules(e)
			if len(errs) > 0 {
				rules = broken(e)
			}
			return compiledException{rules, errs}
		})
	}
	return t
}

// keyOf returns the key of an exception in a Timetable.
func keyOf(e *v1alpha1.GateException) string { return e.Namespace + "/" + e.Name }

// Plan returns the plan of the Gate with the exceptions that count, in order of precedence, and with the periods of requests. Only
// exceptions for which AppliesToGate returns true apply. A nil budget means a new budget of schedule.DecisionLookups. Excess exceptions
// count as broken, because the Gate could open without them.
func (t *Timetable) Plan(counts []*v1alpha1.GateException, opened, closed []schedule.Period, budget *schedule.Budget) *schedule.Plan {
	config := t.config
	config.Open, config.Close, config.Budget = opened, closed, budget
	tooMany := Excess(counts)
	for _, e := range counts {
		if AppliesToGate(e, tooMany) {
			config.Exceptions = append(config.Exceptions, t.exception(e, tooMany))
		}
	}
	return schedule.NewPlan(config)
}

// exception returns a compiled exception, a broken one if it is in excess.
func (t *Timetable) exception(e *v1alpha1.GateException, excess []*v1alpha1.GateException) schedule.Exception {
	if slices.Contains(excess, e) {
		return broken(e)
	}
	return t.exceptions[keyOf(e)]().Exception
}

// Above returns the plan of everything that takes precedence over exceptions: requests, close periods with override: Deny, notBefore
// and notAfter. Its reason is schedule.Default while none of them decides.
func (t *Timetable) Above(opened, closed []schedule.Period) *schedule.Plan {
	return schedule.NewPlan(schedule.Config{
		Open: opened, Close: closed, HardClosePeriods: t.config.HardClosePeriods, NotBefore: t.config.NotBefore, NotAfter: t.config.NotAfter,
	})
}

// Requested returns the plan of one request, in force for a period, and of the close periods with override: Deny. Its reason is the
// reason of the request while the request decides.
func (t *Timetable) Requested(action v1alpha1.RequestAction, inForce schedule.Period) *schedule.Plan {
	c := schedule.Config{HardClosePeriods: t.config.HardClosePeriods}
	if action == v1alpha1.RequestOpen {
		c.Open = []schedule.Period{inForce}
	} else {
		c.Close = []schedule.Period{inForce}
	}
	return schedule.NewPlan(c)
}

// Alone returns the plan of one exception. Its reason is schedule.Default while the exception does not decide.
func (t *Timetable) Alone(e *v1alpha1.GateException) *schedule.Plan {
	return schedule.NewPlan(schedule.Config{Exceptions: []schedule.Exception{t.exceptions[keyOf(e)]().Exception}})
}

// AppliesToGate returns whether an exception affects the state of its Gate. An exception with targets affects it only if it is in
// excess and may have been meant to close. It then closes the Gate, because the number of overlays is limited.
func AppliesToGate(e *v1alpha1.GateException, excess []*v1alpha1.GateException) bool {
	return !e.HasTargets() || MayClose(&e.Spec) && slices.Contains(excess, e)
}

// ExceptionErrors returns the errors of an exception, which must have been passed to Compile.
func (t *Timetable) ExceptionErrors(e *v1alpha1.GateException) field.ErrorList {
	return t.exceptions[keyOf(e)]().errs
}

// RefusedLeads returns the errors of refused lead times by exception name.
func (t *Timetable) RefusedLeads(counts []*v1alpha1.GateException) map[string]field.ErrorList {
	hasLead := func(e *v1alpha1.GateException) bool { return e.Spec.LeadTime != nil }
	if !slices.ContainsFunc(counts, hasLead) || len(t.Errors) > 0 {
		return nil
	}
	refused, names := map[string]field.ErrorList{}, t.Plan(counts, nil, nil, nil).Refused()
	for _, e := range counts {
		if hasLead(e) && slices.Contains(names, e.Name) {
			refused[e.Name] = field.ErrorList{field.Invalid(field.NewPath("spec", "leadTime"), e.Spec.LeadTime.String(),
				msgLeadRefused)}
		}
	}
	return refused
}
