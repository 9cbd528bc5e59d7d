package preview

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

const (
	// searched bounds the search for an opening. Any nine years contain a February 29.
	searched = 9 * 366 * 24 * time.Hour

	// year bounds the search in calendars, which are read over a longer range.
	year = 366 * 24 * time.Hour

	// centuries bounds the search for a dated period.
	centuries = 250 * year

	// month is the interval in which openings are counted. More than tooMany openings are probably a mistake. Hourly openings amount to 720.
	month, tooMany = 30 * 24 * time.Hour, 1000

	// warningLookups bounds the lookups for the warnings about an object, which takes about a second at most.
	warningLookups = 3_000_000
)

// search finds when Gates are open or closed, within a budget.
type search struct {
	*Set
	r      Range
	budget *schedule.Budget
	warn   func(field, format string, args ...any)
}

// warnings returns the warnings about a valid Gate in manifests. There are none for a Gate of a cluster.
func (s *Set) warnings(g *v1alpha1.Gate, r Range) (warnings []Fault) {
	from := r.From
	if s.validate == nil || s.isKnown(g) {
		return nil
	}
	warn := func(field, format string, args ...any) {
		warnings = append(warnings, s.fault(g, field, fmt.Sprintf(format, args...)))
	}
	find := &search{s, r, schedule.NewBudget(context.Background(), warningLookups), warn}
	for i := range g.Spec.Targets {
		ref := &g.Spec.Targets[i]
		if _, err := target.For(ref.APIVersion, ref.Kind); err != nil {
			warn(fmt.Sprintf("spec.targets[%d].kind", i), "%s", err)
		}
	}
	if c := g.Spec.Certificates; c != nil && c.Strict && c.SafetyMargin != nil {
		warn("spec.certificates.safetyMargin", "has no effect with strict: true, which lets certificates expire")
	}
	if g.Audits() && g.Spec.Release != nil {
		warn("spec.release", "has no effect with mode Audit, which holds no targets")
	}
	if g.Spec.NotAfter != nil && !g.Spec.NotAfter.After(from) {
		warn("spec.notAfter", "is in the past: only requests open the gate")
		return warnings
	}
	for i := range g.Spec.OpenPeriods {
		find.warnPeriod(g, fmt.Sprintf("spec.openPeriods[%d]", i), &g.Spec.OpenPeriods[i], schedule.Opened)
	}
	for i := range g.Spec.ClosePeriods {
		find.warnPeriod(g, fmt.Sprintf("spec.closePeriods[%d]", i), &g.Spec.ClosePeriods[i].Period, schedule.Closed)
	}
	find.warnOpenings(g)
	return warnings
}

// warnOpenings warns about a Gate that has periods but never opens, and about a Gate that opens too often.
func (s *search) warnOpenings(g *v1alpha1.Gate) {
	if len(s.snapshot(g, s.r).Broken()) > 0 {
		return // there is a separate warning about a broken calendar
	}
	hasCalendars, opens := len(timetable.CalendarsOf(g)) > 0, "never opens"
	if hasCalendars {
		opens = "does not open in the next 366 days"
	}
	leave := "its periods leave"
	switch bounds := boundsIn(g); {
	case strings.Contains(bounds, " "):
		leave = "its periods, " + bounds + " leave"
	case bounds != "":
		leave = "its periods and " + bounds + " leave"
	}
	switch {
	case hasCalendars && s.finds(g, schedule.Opened, year), !hasCalendars && s.opens(g):
	case g.Spec.Default == v1alpha1.StateOpened && !hasCalendars:
		s.warn("spec", "the gate is always closed: its close periods leave no time in which it is open")
	case g.Spec.Default == v1alpha1.StateOpened || len(g.Spec.OpenPeriods) > 0:
		s.warn("spec", "the gate %s: %s no time in which it is open", opens, leave)
	}
	openings := 0
	for i := range s.states(g, month) {
		if i.State == schedule.Opened {
			openings++
		}
	}
	if openings > tooMany {
		s.warn("spec", "the gate opens %d times in 30 days, and each opening reconciles all targets: use longer periods", openings)
	}
}

// opens returns whether a Gate without calendars ever opens. Beyond the horizon, its schedule changes only when dated periods end.
func (s *search) opens(g *v1alpha1.Gate) bool {
	from, until := s.bounds(g, searched)
	if s.within(g, schedule.Opened, from, until) {
		return true
	}
	dated := slices.Clone(g.Spec.OpenPeriods)
	for i := range g.Spec.ClosePeriods {
		dated = append(dated, g.Spec.ClosePeriods[i].Period)
	}
	for i := range dated {
		if dated[i].Until == nil {
			continue
		}
		for in := range s.states(periodAlone(g, &dated[i], schedule.Opened), centuries) {
			if in.State == schedule.Opened && in.Until.After(until) && s.within(g, schedule.Opened, schedule.Later(in.From, until), in.Until.Add(searched)) {
				return true
			}
		}
	}
	return false
}

// bounds returns the range of a search. It starts now, or at notBefore if that is later, and ends after the horizon, or at notAfter if
// that is earlier.
func (s *search) bounds(g *v1alpha1.Gate, horizon time.Duration) (from, until time.Time) {
	from = s.r.From
	if g.Spec.NotBefore != nil {
		from = schedule.Later(from, g.Spec.NotBefore.Time)
	}
	until = from.Add(horizon)
	if g.Spec.NotAfter != nil && g.Spec.NotAfter.Time.Before(until) {
		until = g.Spec.NotAfter.Time
	}
	return from, until
}

// boundsIn describes the bounds of a Gate for a message, empty if it has none.
func boundsIn(g *v1alpha1.Gate) string {
	var names []string
	if g.Spec.NotBefore != nil {
		names = append(names, "notBefore")
	}
	if g.Spec.NotAfter != nil {
		names = append(names, "notAfter")
	}
	return strings.Join(names, " and ")
}

// periodAlone returns a Gate in the time zone of g whose only period is p. The Gate has the given state during the period, and the
// opposite state otherwise.
func periodAlone(g *v1alpha1.Gate, p *v1alpha1.Period, state schedule.State) *v1alpha1.Gate {
	alone := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{TimeZone: g.Spec.TimeZone}}
	alone.Namespace = g.Namespace
	if alone.Spec.Default = v1alpha1.StateClosed; state == schedule.Opened {
		alone.Spec.OpenPeriods = []v1alpha1.Period{*p}
	} else {
		alone.Spec.Default, alone.Spec.ClosePeriods = v1alpha1.StateOpened, []v1alpha1.ClosePeriod{{Period: *p}}
	}
	return alone
}

// warnPeriod warns about a period of g that never applies. state is the state of g during the period.
func (s *search) warnPeriod(g *v1alpha1.Gate, path string, p *v1alpha1.Period, state schedule.State) {
	alone, horizon := periodAlone(g, p, state), searched
	if p.Until != nil {
		horizon = centuries
	}
	from, until := s.bounds(g, horizon)
	bounds := boundsIn(g)
	switch {
	case p.Calendar != nil && !s.finds(alone, state, year):
		s.warn(path, "period %s has no event in the next 366 days", p.Name)
	case p.Calendar != nil:
	case p.Until != nil && !s.finds(alone, state, centuries):
		s.warn(path, "period %s is already over", p.Name)
	case bounds != "" && !s.within(alone, state, from, until):
		s.warn(path, "period %s never occurs %s", p.Name, map[string]string{
			"notBefore": "after notBefore", "notAfter": "before notAfter", "notBefore and notAfter": "between notBefore and notAfter",
		}[bounds])
	}
}

// warnException returns warnings about an exception in a manifest that is probably a mistake.
func (s *Set) warnException(e *v1alpha1.GateException, from time.Time) (warnings []Fault) {
	if s.validate == nil || s.isKnown(e) {
		return nil
	}
	find := &search{s, Range{From: from}, schedule.NewBudget(context.Background(), warningLookups), nil}
	if e.ExpiredBy(from) {
		return []Fault{s.fault(e, "spec.validUntil", "the exception is already over")}
	}
	for _, list := range []struct {
		name    string
		periods []v1alpha1.Period
	}{{"openPeriods", e.Spec.OpenPeriods}, {"closePeriods", e.Spec.ClosePeriods}} {
		for i, p := range list.periods {
			alone := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, TimeZone: e.Spec.TimeZone, OpenPeriods: []v1alpha1.Period{p}}}
			if !find.within(alone, schedule.Opened, e.Spec.ValidFrom.Time, e.Spec.ValidUntil.Time) {
				warnings = append(warnings, s.fault(e, fmt.Sprintf("spec.%s[%d]", list.name, i), "has no time within validFrom and validUntil"))
			}
		}
	}
	return warnings
}

// finds returns whether a Gate is in a state at any time from the start of the range until horizon after it.
func (s *search) finds(g *v1alpha1.Gate, state schedule.State, horizon time.Duration) bool {
	return s.within(g, state, s.r.From, s.r.From.Add(horizon))
}

// within returns whether a Gate is in a state at any time between from and until. It returns true if the search exceeds the budget.
func (s *search) within(g *v1alpha1.Gate, state schedule.State, from, until time.Time) bool {
	plan, errs := s.snapshot(g, s.r).Plan(from, until, s.budget)
	if len(errs) > 0 {
		return true
	}
	for i := range plan.Intervals(from, until) {
		if i.State == state {
			return true
		}
	}
	return plan.Err() != nil
}

// states returns the intervals of a Gate, from the start of the range until horizon after it.
func (s *search) states(g *v1alpha1.Gate, horizon time.Duration) func(func(schedule.Interval) bool) {
	plan, errs := s.snapshot(g, s.r).Plan(s.r.From, s.r.From.Add(horizon), s.budget)
	if len(errs) > 0 {
		return func(func(schedule.Interval) bool) {}
	}
	return plan.Intervals(s.r.From, s.r.From.Add(horizon))
}
