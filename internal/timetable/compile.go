package timetable

import (
	"regexp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/format"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// InvalidDuration returns the error for a value that is not a duration or is outside the bounds of its field.
func InvalidDuration(path *field.Path, d v1alpha1.Duration, bounds string) *field.Error {
	if _, err := v1alpha1.ParseDuration(d.String()); err != nil {
		bounds += msgDurationExamples
	}
	return field.Invalid(path, d.String(), bounds)
}

// compiler compiles a spec. It collects all errors, so that the user gets them at once.
type compiler struct {
	errs field.ErrorList
	zone *schedule.Zone
	// gate is the Gate whose periods are compiled, nil for those of an exception.
	gate      *v1alpha1.Gate
	calendars Calendars
	broken    []BrokenCalendar
	// ambiguous lists the warnings about calendars.
	ambiguous []Ambiguity
}

// config compiles the spec of a Gate, except its requests and exceptions.
func (c *compiler) config(spec *v1alpha1.GateSpec) schedule.Config {
	root := field.NewPath("spec")
	c.zone = c.loadZone(root.Child("timeZone"), spec.TimeZone)
	config := schedule.Config{}

	switch spec.Default {
	case v1alpha1.StateOpened:
		config.Default = schedule.Opened
	case v1alpha1.StateClosed:
	default:
		c.add(field.NotSupported(root.Child("default"), spec.Default, []v1alpha1.State{v1alpha1.StateClosed, v1alpha1.StateOpened}))
	}
	if w := spec.Window; w != nil && (w.Duration < v1alpha1.MinWindow || w.Duration > v1alpha1.MaxWindow) {
		c.add(InvalidDuration(root.Child("window"), *w, msgWindowBounds))
	}
	config.NotBefore, config.NotAfter = schedule.RoundUp(timeOf(spec.NotBefore)), timeOf(spec.NotAfter)
	if spec.NotBefore != nil && spec.NotAfter != nil && !spec.NotBefore.Before(spec.NotAfter) {
		c.add(field.Invalid(root.Child("notAfter"), format.Time(spec.NotAfter.Time), msgNotAfter))
	}
	if len(spec.OpenPeriods) > 0 && spec.Default == v1alpha1.StateOpened {
		c.add(field.Invalid(root.Child("openPeriods"), len(spec.OpenPeriods), msgNeedsClosedDefault))
	}
	if n := len(spec.OpenPeriods) + len(spec.ClosePeriods); n > v1alpha1.MaxPeriods {
		c.add(field.TooMany(root, n, v1alpha1.MaxPeriods))
		return config
	}

	names := map[string]bool{}
	for i := range spec.OpenPeriods {
		config.OpenPeriods = append(config.OpenPeriods, c.period(root.Child("openPeriods").Index(i), &spec.OpenPeriods[i], names, true))
	}
	for i := range spec.ClosePeriods {
		path := root.Child("closePeriods").Index(i)
		period := c.period(path, &spec.ClosePeriods[i].Period, names, false)
		switch mode := spec.ClosePeriods[i].Override; mode {
		case v1alpha1.OverrideDeny:
			config.HardClosePeriods = append(config.HardClosePeriods, period)
		case "", v1alpha1.OverrideAllow:
			config.ClosePeriods = append(config.ClosePeriods, period)
		default:
			c.add(field.NotSupported(path.Child("override"), mode, []v1alpha1.Override{v1alpha1.OverrideAllow, v1alpha1.OverrideDeny}))
		}
	}
	return config
}

func (c *compiler) add(err *field.Error) { c.errs = append(c.errs, err) }

// loadZone loads a time zone, and reports an unknown one.
func (c *compiler) loadZone(path *field.Path, name v1alpha1.TimeZone) *schedule.Zone {
	zone, err := schedule.LoadZone(string(name))
	if err != nil {
		c.add(field.Invalid(path, name, err.Error()))
	}
	return zone
}

// periodName matches the names of periods that the CRD allows.
var periodName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// period compiles one period. names contains the names of the previous periods. If there is an error, the result must not be used. opens is
// true for an open period. Fractions of a second are rounded so that the Gate never opens early or closes late.
func (c *compiler) period(path *field.Path, p *v1alpha1.Period, names map[string]bool, opens bool) schedule.Period {
	switch {
	case p.Name == "":
		c.add(field.Required(path.Child("name"), msgPeriodName))
	case !periodName.MatchString(p.Name):
		c.add(field.Invalid(path.Child("name"), p.Name,
			msgPeriodNameForm))
	case names[p.Name]:
		c.add(field.Duplicate(path.Child("name"), p.Name))
	}
	names[p.Name] = true

	zone := c.zone
	if p.TimeZone != "" {
		zone = c.loadZone(path.Child("timeZone"), p.TimeZone)
	}
	weekly := p.Start != nil || p.End != nil || hasDays(p)
	cron := p.Schedule != nil || p.Duration != nil
	dated := p.From != nil || p.Until != nil
	switch {
	case p.Calendar != nil && !weekly && !cron && !dated:
		return c.calendar(path, p, opens)
	case p.Calendar != nil:
	case weekly && !cron && !dated && p.Start != nil && p.End != nil:
		return c.weekly(path, p, zone)
	case cron && !weekly && !dated && p.Schedule != nil && p.Duration != nil:
		return c.cron(path, p, zone)
	case dated && !weekly && !cron && p.From != nil && p.Until != nil:
		return c.dated(path, p, zone, opens)
	}
	c.add(field.Invalid(path, p.Name, msgPeriodForm))
	return schedule.Period{}
}

// weekly compiles a period with start and end.
func (c *compiler) weekly(path *field.Path, p *v1alpha1.Period, zone *schedule.Zone) schedule.Period {
	days := c.days(path, p)
	start, err := schedule.ParseTimeOfDay(*p.Start)
	if err != nil {
		c.add(field.Invalid(path.Child("start"), *p.Start, err.Error()))
	}
	end, err := schedule.ParseEndOfDay(*p.End)
	if err != nil {
		c.add(field.Invalid(path.Child("end"), *p.End, err.Error()))
	}
	return schedule.Weekly(p.Name, days, start, end, zone)
}

// cron compiles a period with schedule and duration.
func (c *compiler) cron(path *field.Path, p *v1alpha1.Period, zone *schedule.Zone) schedule.Period {
	expression, err := schedule.ParseCron(*p.Schedule)
	if err != nil {
		c.add(field.Invalid(path.Child("schedule"), *p.Schedule, err.Error()))
	}
	period, err := schedule.Cron(p.Name, expression, p.Duration.Duration, zone)
	if err != nil {
		c.add(InvalidDuration(path.Child("duration"), *p.Duration, err.Error()))
	}
	return period
}

// timeOf returns the time in t, zero for nil.
func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
