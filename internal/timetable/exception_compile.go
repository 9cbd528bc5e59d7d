package timetable

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Bounds of a GateException, as in the CRD.
const (
	minLeadTime   = time.Second
	maxLeadTime   = v1alpha1.MaxExceptionDuration
	maxNameLength = 253
)

// ValidateException returns the errors of a GateException, each with the path of its field, including those that the schema of the CRD
// finds.
func ValidateException(e *v1alpha1.GateException) field.ErrorList {
	_, errs := exceptionRules(e)
	return errs
}

// exceptionRules compiles the effect of an exception while it is valid. If there is an error, the result must not be used.
func exceptionRules(e *v1alpha1.GateException) (schedule.Exception, field.ErrorList) {
	c := &compiler{}
	root := field.NewPath("spec")
	c.zone = c.loadZone(root.Child("timeZone"), e.Spec.TimeZone)
	switch name := e.Spec.GateRef.Name; {
	case name == "":
		c.add(field.Required(root.Child("gateRef", "name"), msgGateName))
	case len(name) > maxNameLength:
		c.add(field.TooLong(root.Child("gateRef", "name"), name, maxNameLength))
	}
	c.validity(root, &e.Spec)
	made := schedule.Exception{Name: e.Name, From: e.Spec.ValidFrom.Time, Until: e.Spec.ValidUntil.Time}
	switch d := e.Spec.Default; d {
	case "":
	case v1alpha1.StateClosed, v1alpha1.StateOpened:
		state := schedule.Closed
		if d == v1alpha1.StateOpened {
			state = schedule.Opened
		}
		made.Default = &state
	default:
		c.add(field.NotSupported(root.Child("default"), d, []v1alpha1.State{v1alpha1.StateClosed, v1alpha1.StateOpened}))
	}
	if n := len(e.Spec.Targets); n > v1alpha1.MaxExceptionTargets {
		c.add(field.TooMany(root.Child("targets"), n, v1alpha1.MaxExceptionTargets))
	}
	c.errs = append(c.errs, ValidateTargets(e.Spec.Targets)...)
	if lead := e.Spec.LeadTime; lead != nil {
		made.Lead = lead.Duration
		c.leadTime(root.Child("leadTime"), &e.Spec)
	}
	if ttl := e.Spec.TTLAfterExpired; ttl != nil && (ttl.Duration < 0 || ttl.Duration > v1alpha1.MaxTTLAfterExpired) {
		c.add(InvalidDuration(root.Child("ttlAfterExpired"), *ttl, msgDurationBounds))
	}
	switch n := len(e.Spec.OpenPeriods) + len(e.Spec.ClosePeriods); {
	case n == 0 && e.Spec.Default == "":
		c.add(field.Required(root, msgNoEffect))
	case n > v1alpha1.MaxPeriods:
		c.add(field.TooMany(root, n, v1alpha1.MaxPeriods))
		return made, c.errs
	}
	names := map[string]bool{}
	made.OpenPeriods = c.exceptionPeriods(root.Child("openPeriods"), &e.Spec, e.Spec.OpenPeriods, names, true)
	made.ClosePeriods = c.exceptionPeriods(root.Child("closePeriods"), &e.Spec, e.Spec.ClosePeriods, names, false)
	return made, c.errs
}

// MayClose returns whether an exception may have been meant to close its Gate. This includes exceptions with an unknown default, and those
// with neither periods nor a default.
func MayClose(spec *v1alpha1.GateExceptionSpec) bool {
	return len(spec.ClosePeriods) > 0 || spec.Default != "" && spec.Default != v1alpha1.StateOpened ||
		len(spec.OpenPeriods) == 0 && spec.Default == ""
}

// exceptionPeriods compiles the open periods or the close periods of an exception. For names and opens, see period.
func (c *compiler) exceptionPeriods(path *field.Path, spec *v1alpha1.GateExceptionSpec, periods []v1alpha1.Period, names map[string]bool, opens bool) []schedule.Period {
	var compiled []schedule.Period
	for i := range periods {
		p := &periods[i]
		compiled = append(compiled, c.period(path.Index(i), p, names, opens))
		if spec.TimeZone == "" && p.TimeZone == "" && needsZone(p) {
			c.add(field.Required(path.Index(i).Child("timeZone"),
				msgZoneNeeded))
		}
	}
	return compiled
}

// needsZone returns whether the meaning of a period depends on a time zone.
func needsZone(p *v1alpha1.Period) bool {
	return p.Start != nil || p.Schedule != nil || p.From != nil && p.From.Time().IsZero()
}

// leadTime validates spec.leadTime.
func (c *compiler) leadTime(path *field.Path, spec *v1alpha1.GateExceptionSpec) {
	lead := spec.LeadTime.Duration
	if lead < minLeadTime || lead > maxLeadTime {
		c.add(field.Invalid(path, lead.String(), msgLeadBounds))
	}
	switch {
	case len(spec.Targets) > 0:
		c.add(field.Forbidden(path, msgLeadAndTargets))
	case spec.Default != "":
		c.add(field.Forbidden(path, msgLeadAndDefault))
	case (len(spec.OpenPeriods) > 0) == (len(spec.ClosePeriods) > 0):
		c.add(field.Invalid(path, lead.String(), msgLeadPeriods))
	}
}

// validity validates spec.validFrom and spec.validUntil.
func (c *compiler) validity(root *field.Path, spec *v1alpha1.GateExceptionSpec) {
	from, until := spec.ValidFrom.Time, spec.ValidUntil.Time
	for _, bound := range []struct {
		name string
		at   time.Time
	}{{"validFrom", from}, {"validUntil", until}} {
		switch {
		case bound.at.IsZero():
			c.add(field.Required(root.Child(bound.name), msgValidityRequired))
		case bound.at.Nanosecond() != 0:
			c.add(field.Invalid(root.Child(bound.name), bound.at.UTC().Format(time.RFC3339Nano), msgWholeSeconds))
		}
	}
	switch {
	case from.IsZero() || until.IsZero():
	case !from.Before(until):
		c.add(field.Invalid(root.Child("validUntil"), format.Time(until), msgValidUntilLater))
	case until.Sub(from) > v1alpha1.MaxExceptionDuration:
		c.add(field.Invalid(root.Child("validUntil"), format.Time(until), msgValidityBounds))
	}
}

// Excess returns the exceptions over the limit. counts lists the exceptions that count, in order of precedence. The newest exceptions that
// only close are the first to exceed the limit, because most of them need no approval and must not break approved ones. The newest of the
// others follow.
func Excess(counts []*v1alpha1.GateException) []*v1alpha1.GateException {
	return counts[:max(0, len(counts)-v1alpha1.MaxEffectiveExceptions)]
}

// broken returns the effect of a broken exception: it opens nothing, and keeps the Gate closed where the exception could close it.
func broken(e *v1alpha1.GateException) schedule.Exception {
	return schedule.Exception{
		Name: e.Name, From: e.Spec.ValidFrom.Time, Until: e.Spec.ValidUntil.Time, Broken: true, Closes: MayClose(&e.Spec),
	}
}
