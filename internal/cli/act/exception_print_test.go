package act

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/cli/kube"
	"github.com/fluxcd/gating-controller/internal/cli/term"
)

// Approvers read these lines, so the text of an author must not change them.
func TestDescribedPeriodsHaveTheirZoneAndNoControlCharacters(t *testing.T) {
	g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, TimeZone: "America/New_York"}}
	only := []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps\x1b[2K"}}
	e := &v1alpha1.GateException{Spec: v1alpha1.GateExceptionSpec{Targets: only, TimeZone: "Asia/Tokyo", Default: v1alpha1.StateClosed, OpenPeriods: []v1alpha1.Period{
		{Name: "a", Start: ptr.To("09:00"), End: ptr.To("10:00")},
		{Name: "b", Start: ptr.To("09:00"), End: ptr.To("10:00"), TimeZone: "Europe/Oslo"},
		{Name: "c", Schedule: ptr.To("0 0 * * *\x1b[2K"), Duration: &v1alpha1.Duration{Duration: time.Hour}},
		{Name: "d", Schedule: ptr.To("0 2 1-7 * SUN"), Duration: &v1alpha1.Duration{Duration: time.Hour}},
		{Name: "e", Schedule: ptr.To("0 2 * * SUN"), Duration: &v1alpha1.Duration{Duration: time.Hour}},
		{Name: "f", Start: ptr.To("09:00"), End: ptr.To("10:00"), DaysOfWeek: []v1alpha1.DayOfWeek{"Sunday", "Monday"}, WeeksOfMonth: []v1alpha1.WeekOfMonth{"First", "Last"}},
		{Name: "g", Start: ptr.To("09:00"), End: ptr.To("10:00"), DaysOfMonth: []v1alpha1.DayOfMonth{1, -1}},
		{Name: "h", Start: ptr.To("09:00"), End: ptr.To("10:00"), WorkdaysOfMonth: []v1alpha1.WorkdayOfMonth{-2}},
		{Name: "i", Start: ptr.To("09:00"), End: ptr.To("10:00"), EveryWeeks: ptr.To[int32](2), Anchor: ptr.To[v1alpha1.Date]("2026-12-07")},
		{Name: "k", From: ptr.To[v1alpha1.DateTime]("2026-12-24"), Until: ptr.To[v1alpha1.DateTime]("2026-12-26")},
		{Name: "l", From: ptr.To[v1alpha1.DateTime]("2026-12-24T08:00"), Until: ptr.To[v1alpha1.DateTime]("2026-12-24T09:00\x1b[2K"), TimeZone: "Europe/Oslo"},
		{Name: "j", Start: ptr.To("09:00"), End: ptr.To("10:00"), DaysOfWeek: []v1alpha1.DayOfWeek{"Friday"}, EveryWeeks: ptr.To[int32](3), Anchor: ptr.To[v1alpha1.Date]("2026-12-07\x1b[2K")},
	}, ClosePeriods: []v1alpha1.Period{{Name: "z", Start: ptr.To("09:30"), End: ptr.To("09:40")}}}}
	e.Annotations = map[string]string{descriptionAnnotation: "typo\x1b[4A", v1alpha1.AuthorsAnnotation: "bob\x1b[2K"}
	text := ""
	for _, line := range describeException((&kube.Factory{Terminal: &term.Terminal{Color: "never"}}).Terminal, e, g, now) {
		text += strings.Join(line[:], " ") + "\n"
	}
	for _, want := range []string{
		"only for Kustomization/apps [2K\n",
		"closes z: daily from 09:30 to 09:40 in Asia/Tokyo", "otherwise closed, instead of the schedule of the gate", "opens a: daily from 09:00 to 10:00 in Asia/Tokyo", "b: daily from 09:00 to 10:00 in Europe/Oslo",
		"d: cron 0 2 1-7 * SUN, for 1h, on days that match the day of month OR the day of week, in Asia/Tokyo", "e: cron 0 2 * * SUN, for 1h in Asia/Tokyo",
		"f: Sunday, Monday (First, Last of the month) from 09:00 to 10:00 in Asia/Tokyo",
		"g: on days 1, -1 of the month from 09:00 to 10:00 in Asia/Tokyo", "h: on workdays -2 of the month from 09:00 to 10:00 in Asia/Tokyo",
		"k: from 2026-12-24 until 2026-12-26 inclusive in Asia/Tokyo", "l: from 2026-12-24T08:00 until 2026-12-24T09:00",
		"i: daily every 2 weeks, counted from the week of 2026-12-07, from 09:00 to 10:00 in Asia/Tokyo", "j: Friday every 3 weeks, counted from the week of 2026-12-07",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}
