package timetable

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Bounds of the days of a weekly period, as in the CRD.
const (
	maxDayOfMonth     = 31
	maxWorkdayOfMonth = 23
	minEveryWeeks     = 2
)

var weekdays = map[v1alpha1.DayOfWeek]time.Weekday{
	"Sunday": time.Sunday, "Monday": time.Monday, "Tuesday": time.Tuesday, "Wednesday": time.Wednesday,
	"Thursday": time.Thursday, "Friday": time.Friday, "Saturday": time.Saturday,
}

var weeksOfMonth = map[v1alpha1.WeekOfMonth]schedule.WeekOfMonth{
	"First": schedule.First, "Second": schedule.Second, "Third": schedule.Third, "Fourth": schedule.Fourth,
	"Fifth": schedule.Fifth, "Last": schedule.Last,
}

// hasDays returns whether p has a field that selects the days of a weekly period.
func hasDays(p *v1alpha1.Period) bool {
	return p.DaysOfWeek != nil || p.WeeksOfMonth != nil || p.DaysOfMonth != nil || p.WorkdaysOfMonth != nil || p.EveryWeeks != nil || p.Anchor != nil
}

// days compiles the fields that select the days of a weekly period.
func (c *compiler) days(path *field.Path, p *v1alpha1.Period) schedule.Days {
	days := schedule.Days{
		Weekdays: named(c, path.Child("daysOfWeek"), p.DaysOfWeek, weekdays, "must be Monday, Tuesday, Wednesday, Thursday, Friday, Saturday or Sunday"),
		Weeks:    c.weeks(path, p),
		OfMonth: numbers(c, path.Child("daysOfMonth"), p.DaysOfMonth, maxDayOfMonth,
			"must be a day of the month from 1 to 31, or from -1 (the last day) to -31"),
		WorkdaysOfMonth: numbers(c, path.Child("workdaysOfMonth"), p.WorkdaysOfMonth, maxWorkdayOfMonth,
			"must be a workday of the month from 1 to 23, or from -1 (the last workday) to -23"),
	}
	forms := 0
	for _, has := range []bool{len(p.WeeksOfMonth) > 0, len(p.DaysOfMonth) > 0, len(p.WorkdaysOfMonth) > 0, p.EveryWeeks != nil} {
		if has {
			forms++
		}
	}
	switch {
	case forms > 1:
		c.add(field.Invalid(path, p.Name, "only one of weeksOfMonth, daysOfMonth, workdaysOfMonth and everyWeeks is allowed: write a period for each"))
	case len(p.DaysOfWeek) > 0 && len(p.DaysOfMonth)+len(p.WorkdaysOfMonth) > 0:
		c.add(field.Invalid(path, p.Name, "daysOfWeek is not allowed with daysOfMonth or workdaysOfMonth: remove daysOfWeek, or use weeksOfMonth"))
	case (p.EveryWeeks == nil) != (p.Anchor == nil):
		c.add(field.Invalid(path, p.Name,
			"everyWeeks and anchor need each other: everyWeeks 2 and anchor 2026-12-07 mean every second week, such as the one from 7 December 2026"))
	case p.EveryWeeks != nil:
		c.everyWeeks(path, p, &days)
	}
	return days
}

// everyWeeks compiles everyWeeks and anchor of a period into days.
func (c *compiler) everyWeeks(path *field.Path, p *v1alpha1.Period, days *schedule.Days) {
	if n := *p.EveryWeeks; n < minEveryWeeks || n > schedule.MaxEveryWeeks {
		c.add(field.Invalid(path.Child("everyWeeks"), n, "must be from 2 to 26"))
	}
	anchor, err := time.Parse(time.DateOnly, string(*p.Anchor))
	if err != nil {
		c.add(field.Invalid(path.Child("anchor"), *p.Anchor, "must be a date such as 2026-12-07"))
	}
	days.EveryWeeks, days.Anchor = int(*p.EveryWeeks), schedule.DayOf(anchor)
}

// refuseEmpty reports a list that is set but empty: it would mean every day.
func refuseEmpty[T any](c *compiler, path *field.Path, list []T) {
	if list != nil && len(list) == 0 {
		c.add(field.Invalid(path, list, "must have at least one day: to start every day, remove the field"))
	}
}

// numbers returns the valid numbers of list, which are from -most to most without 0, and reports the others.
func numbers[T ~int32](c *compiler, path *field.Path, list []T, most T, cause string) (all []int) {
	refuseEmpty(c, path, list)
	for i, n := range list {
		switch path := path.Index(i); {
		case n == 0 || n < -most || n > most:
			c.add(field.Invalid(path, n, cause))
			continue
		case slices.Contains(list[:i], n):
			c.add(field.Duplicate(path, n))
		}
		all = append(all, int(n))
	}
	return all
}

// weeks compiles weeksOfMonth, which needs daysOfWeek.
func (c *compiler) weeks(path *field.Path, p *v1alpha1.Period) []schedule.WeekOfMonth {
	if len(p.WeeksOfMonth) > 0 && len(p.DaysOfWeek) == 0 {
		c.add(field.Invalid(path, p.Name, "weeksOfMonth needs daysOfWeek: daysOfWeek [Sunday] and weeksOfMonth [First] mean the first Sunday of a month"))
	}
	return named(c, path.Child("weeksOfMonth"), p.WeeksOfMonth, weeksOfMonth, "must be First, Second, Third, Fourth, Fifth or Last")
}

// named returns the values of the names in list, and reports names that are not in known.
func named[K ~string, V comparable](c *compiler, path *field.Path, list []K, known map[K]V, cause string) (all []V) {
	refuseEmpty(c, path, list)
	for i, name := range list {
		v, ok := known[name]
		switch path := path.Index(i); {
		case !ok:
			c.add(field.Invalid(path, name, cause))
			continue
		case slices.Contains(all, v):
			c.add(field.Duplicate(path, name))
		}
		all = append(all, v)
	}
	return all
}
