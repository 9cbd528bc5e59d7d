package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/timetable"
)

func TestCronWithDaysOfMonthAndWeekIsAmbiguous(t *testing.T) {
	for schedule, ambiguous := range map[string]bool{
		"0 0 1-7 * SUN":      true,
		"0 0 13 * FRI":       true,
		"0 0 */31 * MON-FRI": true,
		"0 0 1 * */7":        true,
		"0 0 1-7 * 0-6":      true,
		"0 0 1-7 * *":        false,
		"0 0 1-7 * ?":        false,
		"0 0 * * SUN":        false,
		"0 0 */1 * SUN":      false,
		"0 0 ? 12 SUN":       false,
		"* * * * *":          false,
		"0 0 1-7 * FUN":      false, // that is an error already
	} {
		found := timetable.Ambiguities(closed(windows(cron("a", schedule, time.Hour))))
		if got := len(found) == 1; got != ambiguous || len(found) > 1 {
			t.Errorf("%s: %+v", schedule, found)
		}
	}
}

func TestUnevenCronStepIsAmbiguous(t *testing.T) {
	for schedule, want := range map[string][]string{
		"*/15 */6 * * *": nil, "0/15 0 * * *": nil, "0-50/7 0 * * *": nil, "*/60 */24 */31 */12 *": nil,
		"*/7 * * * *":         {"has the step 7 for the minute, which has 60 values"},
		"3/40,*/30 */5 * * *": {"has the step 40 for the minute", "has the step 5 for the hour, which has 24 values"},
		"0 0 */2 * *":         {"has the step 2 for the day of month, which has 31 values"},
	} {
		found := timetable.Ambiguities(closed(windows(cron("a", schedule, time.Minute))))
		if len(found) != len(want) {
			t.Errorf("%s: %+v, want %v", schedule, found, want)
			continue
		}
		for i, w := range want {
			if !strings.Contains(found[i].Message, w) {
				t.Errorf("%s: %+v, want %v", schedule, found, want)
			}
		}
	}
}

func TestAmbiguityHasPeriodAndMeaning(t *testing.T) {
	g := closed(
		windows(weekly("nights", "22:00", "05:00", "Sunday"), cron("patching", "0\t2 1-7 * SUN", time.Hour)),
		closePeriods(closing(cron("unlucky", "0 0 13 * FRI", 24*time.Hour), "")),
	)
	want := []timetable.Ambiguity{
		{Field: "spec.openPeriods[1].schedule", Message: "open period 'patching': '0 2 1-7 * SUN' starts on each day whose day of month is 1-7 OR whose day of week is SUN, as always in cron. " +
			"For days that are both, such as the first Sunday of a month, use a weekly period with daysOfWeek and weeksOfMonth"},
		{Field: "spec.closePeriods[0].schedule", Message: "close period 'unlucky': '0 0 13 * FRI' starts on each day whose day of month is 13 OR whose day of week is FRI, as always in cron. " +
			"For days that are both, such as the first Sunday of a month, use a weekly period with daysOfWeek and weeksOfMonth"},
	}
	if got := timetable.Ambiguities(g); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	spec := v1alpha1.GateExceptionSpec{OpenPeriods: g.Spec.OpenPeriods}
	for i := range g.Spec.ClosePeriods {
		spec.ClosePeriods = append(spec.ClosePeriods, g.Spec.ClosePeriods[i].Period)
	}
	if got := timetable.AmbiguitiesOfException(&v1alpha1.GateException{Spec: spec}); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for n, end := range map[int]string{1: "and weeksOfMonth", 2: "; one more period has such a schedule", 3: "; 2 more periods have such schedules"} {
		if got := timetable.SumUp(append(want, want...)[:n]); !strings.HasPrefix(got, want[0].Message) || !strings.HasSuffix(got, end) {
			t.Errorf("of %d: %s", n, got)
		}
	}
	if got := timetable.SumUp(nil); got != "" {
		t.Error(got)
	}
}
