package gate

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Bounds of a GateException, as in the CRD.
const (
	minLeadTime   = time.Second
	maxLeadTime   = v1alpha1.MaxExceptionDuration
	maxNameLength = 253
)

var exceptionTypes = map[v1alpha1.ExceptionType]schedule.ExceptionType{
	v1alpha1.ExceptionExtend: schedule.Extend, v1alpha1.ExceptionSuspend: schedule.Suspend, v1alpha1.ExceptionReplace: schedule.Replace,
}

// ValidateException returns what is wrong with a GateException, each error with the path
// of its field. Like Validate for a Gate, it also covers what the CRD's schema refuses.
func ValidateException(e *v1alpha1.GateException) field.ErrorList {
	c := &compiler{}
	c.exception(e, "UTC", true)
	return c.errs
}

// exception checks an exception, and returns its windows in a time zone. For opens, see period.
func (c *compiler) exception(e *v1alpha1.GateException, zone v1alpha1.TimeZone, opens bool) []schedule.Period {
	c.zone = c.loadZone(nil, zone)
	root := field.NewPath("spec")
	switch name := e.Spec.GateRef.Name; {
	case name == "":
		c.add(field.Required(root.Child("gateRef", "name"), "an exception needs the name of a gate"))
	case len(name) > maxNameLength:
		c.add(field.TooLong(root.Child("gateRef", "name"), name, maxNameLength))
	}
	if _, ok := exceptionTypes[e.Spec.Type]; !ok {
		c.add(field.NotSupported(root.Child("type"), e.Spec.Type,
			[]v1alpha1.ExceptionType{v1alpha1.ExceptionExtend, v1alpha1.ExceptionSuspend, v1alpha1.ExceptionReplace}))
	}
	c.validity(root, &e.Spec)
	if lead := e.Spec.LeadTime; lead != nil {
		if e.Spec.Type != v1alpha1.ExceptionSuspend {
			c.add(field.Invalid(root.Child("leadTime"), lead.String(), "is for type suspend only"))
		}
		if lead.Duration < minLeadTime || lead.Duration > maxLeadTime {
			c.add(invalidDuration(root.Child("leadTime"), *lead, "must be from 1s to 2160h (90 days)"))
		}
	}
	if ttl := e.Spec.TTLAfterExpired; ttl != nil && (ttl.Duration < 0 || ttl.Duration > v1alpha1.MaxTTLAfterExpired) {
		c.add(invalidDuration(root.Child("ttlAfterExpired"), *ttl, "must be from 0s to 87600h (10 years)"))
	}
	return c.windows(root.Child("windows"), &e.Spec, opens)
}

// RefusedLeads returns what is wrong with the leads of the exceptions of a Gate, by the names of those that are refused.
func (c Calendars) RefusedLeads(g *v1alpha1.Gate, exceptions []*v1alpha1.GateException, now time.Time) map[string]field.ErrorList {
	config, _, errs := c.compile(g)
	hasLead := func(e *v1alpha1.GateException) bool { return e.Spec.LeadTime != nil }
	if !slices.ContainsFunc(exceptions, hasLead) || len(errs) > 0 {
		return nil
	}
	counts := counting(g, exceptions, now)
	config.Exceptions = compileExceptions(g, counts)
	refused, names := map[string]field.ErrorList{}, schedule.NewPlan(config).Refused()
	for _, e := range counts {
		if hasLead(e) && slices.Contains(names, e.Name) {
			refused[e.Name] = field.ErrorList{field.Invalid(field.NewPath("spec", "leadTime"), e.Spec.LeadTime.String(),
				"cannot be had: the gate and the windows of its exceptions change too often for it, use fewer or longer windows")}
		}
	}
	return refused
}

func (c *compiler) validity(root *field.Path, spec *v1alpha1.GateExceptionSpec) {
	from, until := spec.ValidFrom.Time, spec.ValidUntil.Time
	for _, bound := range []struct {
		name string
		at   time.Time
	}{{"validFrom", from}, {"validUntil", until}} {
		switch {
		case bound.at.IsZero():
			c.add(field.Required(root.Child(bound.name), "an exception is bound in time"))
		case bound.at.Nanosecond() != 0:
			c.add(field.Invalid(root.Child(bound.name), bound.at.UTC().Format(time.RFC3339Nano), "must be in whole seconds"))
		}
	}
	switch {
	case from.IsZero() || until.IsZero():
	case !from.Before(until):
		c.add(field.Invalid(root.Child("validUntil"), rfc3339(until), "must be later than validFrom"))
	case until.Sub(from) > v1alpha1.MaxExceptionDuration:
		c.add(field.Invalid(root.Child("validUntil"), rfc3339(until), "must be at most 2160h (90 days) after validFrom"))
	}
}

// windows compiles the windows of an exception in the zone of the compiler. For opens, see
// period.
func (c *compiler) windows(path *field.Path, spec *v1alpha1.GateExceptionSpec, opens bool) []schedule.Period {
	switch n := len(spec.Windows); {
	case n == 0 && spec.Type != v1alpha1.ExceptionReplace:
		c.add(field.Required(path, "an exception needs windows, except one of type replace"))
	case n > v1alpha1.MaxPeriods:
		c.add(field.TooMany(path, n, v1alpha1.MaxPeriods))
		return nil
	}
	var periods []schedule.Period
	names := map[string]bool{}
	for i := range spec.Windows {
		periods = append(periods, c.period(path.Index(i), &spec.Windows[i], names, opens))
	}
	return periods
}

// compileExceptions returns the exceptions that count for the schedule of their Gate. The excess ones are broken: to ignore them could open the Gate.
func compileExceptions(g *v1alpha1.Gate, counts []*v1alpha1.GateException) []schedule.Exception {
	var compiled []schedule.Exception
	for i, e := range counts {
		compiled = append(compiled, compileException(&g.Spec, e, i < excess(counts)))
	}
	return compiled
}

// excess returns how many of the exceptions that count are too many: those that were created last, which come first.
func excess(counts []*v1alpha1.GateException) int {
	return max(0, len(counts)-v1alpha1.MaxEffectiveExceptions)
}

// compileException returns an exception of a Gate for its schedule, marked as broken if it
// is excess or invalid.
func compileException(g *v1alpha1.GateSpec, e *v1alpha1.GateException, isExcess bool) schedule.Exception {
	compiled := schedule.Exception{
		Name: e.Name, Type: exceptionTypes[e.Spec.Type], From: e.Spec.ValidFrom.Time, Until: e.Spec.ValidUntil.Time,
		Broken: isExcess,
	}
	if _, known := exceptionTypes[e.Spec.Type]; !known {
		compiled.Type = schedule.Replace // it can do both
	}
	if isExcess {
		return compiled
	}
	c := &compiler{}
	opens := (g.Default == v1alpha1.StateClosed) == (e.Spec.Type != v1alpha1.ExceptionSuspend)
	windows := c.exception(e, g.TimeZone, opens)
	if compiled.Broken = len(c.errs) > 0; compiled.Broken {
		return compiled
	}
	if compiled.Windows = windows; e.Spec.LeadTime != nil {
		compiled.Lead = e.Spec.LeadTime.Duration
	}
	return compiled
}
