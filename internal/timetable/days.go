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
		Weekdays: named(c, path.Child("daysOfWeek"), p.DaysOfWeek, weekdays, msgWeekday),
		Weeks:    c.weeks(path, p),
		OfMonth: numbers(c, path.Child("daysOfMonth"), p.DaysOfMonth, maxDayOfMonth,
			msgDayOfMonth),
		WorkdaysOfMonth: numbers(c, path.Child("workdaysOfMonth"), p.WorkdaysOfMonth, maxWorkdayOfMonth,
			msgWorkday),
	}
	forms := 0
	for _, has := range []bool{len(p.WeeksOfMonth) > 0, len(p.DaysOfMonth) > 0, len(p.WorkdaysOfMonth) > 0, p.EveryWeeks != nil} {
		if has {
			forms++
		}
	}
	switch {
	case forms > 1:
		c.add(field.Invalid(path, p.Name, msgOneSelector))
	case len(p.DaysOfWeek) > 0 && len(p.DaysOfMonth)+len(p.WorkdaysOfMonth) > 0:
		c.add(field.Invalid(path, p.Name, msgWeekdayNotAllowed))
	case (p.EveryWeeks == nil) != (p.Anchor == nil):
		c.add(field.Invalid(path, p.Name,
			msgAnchorNeeded))
	case p.EveryWeeks != nil:
		c.everyWeeks(path, p, &days)
	}
	return days
}

// everyWeeks compiles everyWeeks and anchor of a period into days.
func (c *compiler) everyWeeks(path *field.Path, p *v1alpha1.Period, days *schedule.Days) {
	if n := *p.EveryWeeks; n < minEveryWeeks || n > schedule.MaxEveryWeeks {
		c.add(field.Invalid(path.Child("everyWeeks"), n, msgEveryWeeks))
	}
	anchor, err := time.Parse(time.DateOnly, string(*p.Anchor))
	if err != nil {
		c.add(field.Invalid(path.Child("anchor"), *p.Anchor, msgAnchorForm))
	}
	days.EveryWeeks, days.Anchor = int(*p.EveryWeeks), schedule.DayOf(anchor)
}

// refuseEmpty reports a list that is set but empty, because it would mean every day.
func refuseEmpty[T any](c *compiler, path *field.Path, list []T) {
	if list != nil && len(list) == 0 {
		c.add(field.Invalid(path, list, msgNoDay))
	}
}

// numbers returns the numbers in list that are from -most to most and not 0. It reports other numbers and duplicates.
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
		c.add(field.Invalid(path, p.Name, msgWeeksNeedDays))
	}
	return named(c, path.Child("weeksOfMonth"), p.WeeksOfMonth, weeksOfMonth, msgWeekOfMonth)
}

// named returns the values of the names in list. It reports unknown names and duplicates.
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
