package gate_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// onDays returns a weekly period from 02:00 to 03:00, changed by edit.
func onDays(edit func(*v1alpha1.Period)) v1alpha1.Period {
	p := weekly("a", "02:00", "03:00")
	edit(&p)
	return p
}

func everyWeeks(n int32, anchor v1alpha1.Date, days ...v1alpha1.DayOfWeek) v1alpha1.Period {
	return onDays(func(p *v1alpha1.Period) { p.EveryWeeks, p.Anchor, p.DaysOfWeek = &n, &anchor, days })
}

func onDaysOfMonth(days ...v1alpha1.DayOfMonth) v1alpha1.Period {
	return onDays(func(p *v1alpha1.Period) { p.DaysOfMonth = days })
}

func onWorkdays(days ...v1alpha1.WorkdayOfMonth) v1alpha1.Period {
	return onDays(func(p *v1alpha1.Period) { p.WorkdaysOfMonth = days })
}

func TestWeeklyPeriodStartsOnItsDays(t *testing.T) {
	for name, tc := range map[string]struct {
		period v1alpha1.Period
		want   string
	}{
		"days of the month":            {onDaysOfMonth(1, 15, -1), "11-30 12-01 12-15 12-31 01-01 01-15 01-31 02-01 02-15"},
		"a day that February lacks":    {onDaysOfMonth(30), "11-30 12-30 01-30"},
		"the last workday":             {onWorkdays(-1), "11-30 12-31 01-29"},
		"the first workday":            {onWorkdays(1), "12-01 01-01 02-01"},
		"the fifth Friday":             {monthly("a", "02:00", "03:00", []v1alpha1.WeekOfMonth{"Fifth"}, "Friday"), "01-29"},
		"every second Tuesday":         {everyWeeks(2, "2026-12-11", "Tuesday"), "11-24 12-08 12-22 01-05 01-19 02-02 02-16"},
		"every 26 weeks, all days":     {everyWeeks(26, "2026-06-07"), "11-30 12-01 12-02 12-03 12-04 12-05 12-06"},
		"the anchor is a Sunday":       {everyWeeks(4, "2027-01-03", "Sunday", "Monday"), "11-30 12-06 12-28 01-03 01-25 01-31"},
		"a zone decides about the day": {onDays(func(p *v1alpha1.Period) { p.DaysOfMonth, p.TimeZone = []v1alpha1.DayOfMonth{1}, "Asia/Tokyo" }), "11-30 12-31 01-31"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(windows(tc.period))
			if errs := gate.Validate(g); len(errs) > 0 {
				t.Fatal(errs)
			}
			intervals, err := gate.Intervals(g, utc("2026-11-24T00:00:00Z"), utc("2027-02-17T00:00:00Z"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i := range intervals {
				if i.State.String() == "opened" {
					got = append(got, i.From.Format("01-02"))
				}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("starts on %s, want %s", text, tc.want)
			}
		})
	}
}

func TestValidateReportsInvalidDays(t *testing.T) {
	only, with, both := "only one of weeksOfMonth, daysOfMonth", "daysOfWeek is not allowed with", "everyWeeks and anchor must be set together"
	for name, tc := range map[string]struct {
		period      v1alpha1.Period
		path, cause string
	}{
		"no day of the week":            {onDays(func(p *v1alpha1.Period) { p.DaysOfWeek = []v1alpha1.DayOfWeek{} }), ".daysOfWeek", "at least one day"},
		"no week of the month":          {onDays(func(p *v1alpha1.Period) { p.WeeksOfMonth = []v1alpha1.WeekOfMonth{} }), ".weeksOfMonth", "at least one day"},
		"no day of the month":           {onDays(func(p *v1alpha1.Period) { p.DaysOfMonth = []v1alpha1.DayOfMonth{} }), ".daysOfMonth", "at least one day"},
		"no workday of the month":       {onDays(func(p *v1alpha1.Period) { p.WorkdaysOfMonth = []v1alpha1.WorkdayOfMonth{} }), ".workdaysOfMonth", "at least one day"},
		"day 0":                         {onDaysOfMonth(1, 0), ".daysOfMonth[1]", "from 1 to 31, or from -1"},
		"day 32":                        {onDaysOfMonth(32), ".daysOfMonth[0]", "from 1 to 31, or from -1"},
		"day -32":                       {onDaysOfMonth(-32), ".daysOfMonth[0]", "from 1 to 31, or from -1"},
		"a day twice":                   {onDaysOfMonth(1, -1, 1), ".daysOfMonth[2]", "Duplicate"},
		"workday 24":                    {onWorkdays(24), ".workdaysOfMonth[0]", "from 1 to 23, or from -1"},
		"workday -24":                   {onWorkdays(-24), ".workdaysOfMonth[0]", "from 1 to 23, or from -1"},
		"a workday twice":               {onWorkdays(-1, -1), ".workdaysOfMonth[1]", "Duplicate"},
		"every week":                    {everyWeeks(1, "2026-12-07"), ".everyWeeks", "from 2 to 26"},
		"every 27 weeks":                {everyWeeks(27, "2026-12-07"), ".everyWeeks", "from 2 to 26"},
		"an anchor that is not a date":  {everyWeeks(2, "next week"), ".anchor", "must be a date such as"},
		"an anchor that does not exist": {everyWeeks(2, "2026-02-30"), ".anchor", "must be a date such as"},
		"an anchor with a time":         {everyWeeks(2, "2026-12-07T00:00:00Z"), ".anchor", "must be a date such as"},
		"everyWeeks without an anchor":  {onDays(func(p *v1alpha1.Period) { p.EveryWeeks = ptr.To[int32](2) }), "", both},
		"an anchor without everyWeeks":  {onDays(func(p *v1alpha1.Period) { p.Anchor = ptr.To[v1alpha1.Date]("2026-12-07") }), "", both},
		"days and workdays of the month": {onDays(func(p *v1alpha1.Period) {
			p.DaysOfMonth, p.WorkdaysOfMonth = []v1alpha1.DayOfMonth{1}, []v1alpha1.WorkdayOfMonth{1}
		}), "", only},
		"days of the month and every 2": {onDays(func(p *v1alpha1.Period) { *p = everyWeeks(2, "2026-12-07"); p.DaysOfMonth = []v1alpha1.DayOfMonth{1} }), "", only},
		"Fridays and days of the month": {onDays(func(p *v1alpha1.Period) {
			p.DaysOfWeek, p.DaysOfMonth = []v1alpha1.DayOfWeek{"Friday"}, []v1alpha1.DayOfMonth{13}
		}), "", with},
		"Fridays and workdays of the month": {onDays(func(p *v1alpha1.Period) {
			p.DaysOfWeek, p.WorkdaysOfMonth = []v1alpha1.DayOfWeek{"Friday"}, []v1alpha1.WorkdayOfMonth{1}
		}), "", with},
		"days of the month without start":   {onDays(func(p *v1alpha1.Period) { p.Start, p.DaysOfMonth = nil, []v1alpha1.DayOfMonth{1} }), "", "exactly one of"},
		"workdays of the month without end": {onDays(func(p *v1alpha1.Period) { p.End, p.WorkdaysOfMonth = nil, []v1alpha1.WorkdayOfMonth{1} }), "", "exactly one of"},
		"everyWeeks and anchor of a cron": {onDays(func(p *v1alpha1.Period) {
			*p = everyWeeks(2, "2026-12-07")
			p.Start, p.End, p.Schedule = nil, nil, ptr.To("0 0 * * *")
		}), "", "exactly one of"},
		"an anchor and a day without a time": {v1alpha1.Period{Name: "a", Anchor: ptr.To[v1alpha1.Date]("2026-12-07")}, "", "exactly one of"},
	} {
		t.Run(name, func(t *testing.T) {
			errs := gate.Validate(closed(windows(tc.period)))
			if len(errs) != 1 || errs[0].Field != "spec.openPeriods[0]"+tc.path || !strings.Contains(errs[0].Error(), tc.cause) {
				t.Errorf("got %v, want %q at %q", errs, tc.cause, tc.path)
			}
		})
	}
}

func TestValidateAcceptsBoundsOfDays(t *testing.T) {
	var days []v1alpha1.DayOfMonth
	for d := range v1alpha1.DayOfMonth(31) {
		days = append(days, d+1)
	}
	for _, p := range []v1alpha1.Period{
		onDaysOfMonth(days...), onDaysOfMonth(-31, 31), onWorkdays(-23, 23), everyWeeks(2, "0001-01-01"), everyWeeks(26, "9999-12-31", "Monday"),
		monthly("a", "02:00", "03:00", []v1alpha1.WeekOfMonth{"First", "Second", "Third", "Fourth", "Fifth", "Last"}, "Monday"),
	} {
		g := closed(windows(p))
		if errs := gate.Validate(g); len(errs) > 0 {
			t.Error(errs)
		}
		if d := gate.Decide(g, noon); d.Next == nil && !slices.Contains(p.WorkdaysOfMonth, 23) {
			t.Errorf("%+v never opens", p)
		}
	}
}
