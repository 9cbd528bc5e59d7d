package cli

import (
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// An approver reads these lines, and nothing that the author writes may change them.
func TestAnApproverSeesTheZoneOfAWindowAndNothingThatHidesALine(t *testing.T) {
	tokyo := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Default: v1alpha1.StateClosed, TimeZone: "Asia/Tokyo"}}
	e := &v1alpha1.GateException{Spec: v1alpha1.GateExceptionSpec{Type: v1alpha1.ExceptionExtend, Windows: []v1alpha1.Period{
		{Name: "a", Start: ptr.To("09:00"), End: ptr.To("10:00")},
		{Name: "b", Start: ptr.To("09:00"), End: ptr.To("10:00"), TimeZone: "Europe/Oslo"},
		{Name: "c", Schedule: ptr.To("0 0 * * *\x1b[2K"), Duration: &v1alpha1.Duration{Duration: time.Hour}},
		{Name: "d", Schedule: ptr.To("0 2 1-7 * SUN"), Duration: &v1alpha1.Duration{Duration: time.Hour}},
		{Name: "e", Schedule: ptr.To("0 2 * * SUN"), Duration: &v1alpha1.Duration{Duration: time.Hour}},
		{Name: "f", Start: ptr.To("09:00"), End: ptr.To("10:00"), DaysOfWeek: []v1alpha1.DayOfWeek{"Sunday", "Monday"}, WeeksOfMonth: []v1alpha1.WeekOfMonth{"First", "Last"}},
	}}}
	e.Annotations = map[string]string{descriptionAnnotation: "typo\x1b[4A", v1alpha1.AuthorsAnnotation: "bob\x1b[2K"}
	text := ""
	for _, line := range (&session{color: "never"}).describeException(e, tokyo, now) {
		text += strings.Join(line[:], " ") + "\n"
	}
	for _, want := range []string{
		"a: daily from 09:00 to 10:00 in Asia/Tokyo", "b: daily from 09:00 to 10:00 in Europe/Oslo",
		"d: cron 0 2 1-7 * SUN, for 1h, on days that match the day of month OR the day of week, in Asia/Tokyo", "e: cron 0 2 * * SUN, for 1h in Asia/Tokyo",
		"f: Sunday, Monday (First, Last of the month) from 09:00 to 10:00 in Asia/Tokyo",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("%q", text)
	}
}
