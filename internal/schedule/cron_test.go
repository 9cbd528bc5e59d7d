package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// refusedCrons has every kind of text that is not a cron expression for us.
var refusedCrons = []struct {
	name, text, because string
}{
	{"a zone before the fields", "TZ=UTC 0 0 * * *", "time zone"},
	{"cron's own name for a zone", "CRON_TZ=Europe/Oslo 0 0 * * *", "time zone"},
	{"a zone without fields, on which robfig/cron panics", "TZ=0", "time zone"},
	{"an empty zone, on which robfig/cron panics", "TZ=", "time zone"},
	{"cron's own zone without fields, on which robfig/cron panics", "CRON_TZ=UTC", "time zone"},
	{"a zone after a space", " TZ=UTC 0 0 * * *", "time zone"},
	{"an interval", "@every 1h", "descriptors"},
	{"a descriptor", "@daily", "descriptors"},
	{"a descriptor after a space", " @daily", "descriptors"},
	{"a day that February never has", "0 0 30 2 *", "never fires"},
	{"a day that no month of thirty has", "0 0 31 2,4,6,9,11 *", "never fires"},
	{"a day of month in an empty list", "0 0 , * *", "empty"},
	{"a minute in an empty list", ", * * * *", "empty"},
	{"an hour in an empty list", "0 ,, * * *", "empty"},
	{"a month in an empty list", "0 0 1 , *", "empty"},
	{"a weekday in an empty list", "0 0 1 * ,", "empty"},
	{"nothing", "", "five fields"},
	{"a space", " ", "five fields"},
	{"four fields", "0 0 * *", "five fields"},
	{"six fields, the first of them seconds", "0 0 0 * * *", "five fields"},
	{"six fields, the last of them a year", "0 0 1 1 * 2026", "five fields"},
	{"minute sixty", "60 * * * *", "five fields"},
	{"hour 24", "0 24 * * *", "five fields"},
	{"day zero of the month", "0 0 0 * *", "five fields"},
	{"month thirteen", "0 0 1 13 *", "five fields"},
	{"weekday eight", "0 0 * * 8", "five fields"},
	{"a range from Sunday as the last day", "0 0 * * 7-2", "five fields"},
	{"a step of zero up to Sunday", "0 0 * * 5-7/0", "five fields"},
	{"a step larger than the week, from Sunday", "0 0 * * 7/8", "has the step 8 for the day of week"},
	{"a step of zero", "*/0 * * * *", "five fields"},
	{"a step larger than the minutes", "*/90 * * * *", "has the step 90 for the minute, which has only 60 values"},
	{"a step larger than the hours, from an hour", "0 5/25 * * *", "has the step 25 for the hour"},
	{"a step larger than the months, in a range", "0 0 1 1-6/13 *", "has the step 13 for the month"},
	{"a step larger than the week, in a list", "0 0 * * 1,*/8", "has the step 8 for the day of week"},
	{"a range the wrong way round", "0 0 * * FRI-MON", "five fields"},
	{"the last day of the month", "0 0 L * *", "five fields"},
	{"a weekday that no language has", "0 0 * * XXX", "five fields"},
	{"a range from everything, which robfig/cron reads as everything", "0 0 * * *-5", "before the dash"},
	{"a range from a question mark, which robfig/cron reads as everything", "0 ?-5 * * *", "before the dash"},
	{"a negative minute", "-1 * * * *", "five fields"},
	{"a number that no integer holds", "99999999999999999999 * * * *", "five fields"},
}

func TestParseCronRefuses(t *testing.T) {
	for _, tt := range refusedCrons {
		t.Run(tt.name, func(t *testing.T) {
			_, err := schedule.ParseCron(tt.text)
			if err == nil {
				t.Fatalf("%q is accepted", tt.text)
			}
			if !strings.Contains(err.Error(), tt.because) {
				t.Errorf("%q is refused by %q, want a word of %q", tt.text, err, tt.because)
			}
		})
	}
}

func TestSundayIsZeroOrSeven(t *testing.T) {
	for seven, zero := range map[string]string{
		"7": "0", "5-7": "5,6,0", "0-7": "*", "1-7/2": "1,3,5,0", "7/2": "0", "7-7": "0", "2,7": "0,2", "3-7/3": "3,6", "SAT,7": "SAT,SUN",
	} {
		for day := range 14 {
			at := utc("2026-04-01T12:00:00Z").AddDate(0, 0, day)
			if got, want := firesOn(t, "0 12 * * "+seven, at), firesOn(t, "0 12 * * "+zero, at); got != want {
				t.Errorf("%s fires on %s: %t, but %s: %t", seven, at.Weekday(), got, zero, want)
			}
		}
	}
}

// firesOn returns whether a cron expression fires at an instant.
func firesOn(t *testing.T, expression string, at time.Time) bool {
	t.Helper()
	c, err := schedule.ParseCron(expression)
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	zone, err := schedule.LoadZone("UTC")
	if err != nil {
		t.Fatal(err)
	}
	period, err := schedule.Cron("a", c, time.Minute, zone)
	if err != nil {
		t.Fatal(err)
	}
	plan := schedule.NewPlan(schedule.Config{OpenPeriods: []schedule.Period{period}})
	return plan.Decide(at).State == schedule.Opened
}

func TestCronExpression(t *testing.T) {
	const fortnight = "2026-04-01/2026-04-15"
	for _, tt := range []struct{ name, expression, within, want string }{
		{"Friday by its name", "0 0 * * FRI", fortnight, "2026-04-03T00:00 2026-04-10T00:00"},
		{"weekdays and months in lower case and in ranges", "5 4 * apr mon-tue", fortnight,
			"2026-04-06T04:05 2026-04-07T04:05 2026-04-13T04:05 2026-04-14T04:05"},
		{"a day of month OR a day of week if both are restricted", "0 0 13 * FRI", fortnight,
			"2026-04-03T00:00 2026-04-10T00:00 2026-04-13T00:00"},
		{"a day of month alone if the day of week is a star", "0 0 13 * *", fortnight, "2026-04-13T00:00"},
		{"a day of month alone if the day of week is a question mark", "0 0 13 * ?", fortnight, "2026-04-13T00:00"},
		{"a day of week alone if the day of month is a star in steps of one", "0 0 */1 * FRI", fortnight,
			"2026-04-03T00:00 2026-04-10T00:00"},
		{"a star in larger steps is a restriction", "0 0 */10 * FRI", fortnight,
			"2026-04-01T00:00 2026-04-03T00:00 2026-04-10T00:00 2026-04-11T00:00"},
		{"every ten minutes of one hour", "*/20 9 3 * *", fortnight, "2026-04-03T09:00 2026-04-03T09:20 2026-04-03T09:40"},
		{"a step without an end goes on to the last", "50/5 20/3 3 * *", fortnight,
			"2026-04-03T20:50 2026-04-03T20:55 2026-04-03T23:50 2026-04-03T23:55"},
		{"lists of ranges with steps", "10-14/4,7 1,3 3 * *", fortnight,
			"2026-04-03T01:07 2026-04-03T01:10 2026-04-03T01:14 2026-04-03T03:07 2026-04-03T03:10 2026-04-03T03:14"},
		{"the last minute of the year and of the month", "59 23 31 * *", "2026-10-01/2027-02-01",
			"2026-10-31T23:59 2026-12-31T23:59 2027-01-31T23:59"},
		{"a leap day in leap years only", "0 0 29 2 *", "2026-01-01/2034-01-01", "2028-02-29T00:00 2032-02-29T00:00"},
		{"a leap day eight years after the last one before 2100", "0 0 29 2 *", "2095-01-01/2105-01-01",
			"2096-02-29T00:00 2104-02-29T00:00"},
		{"a leap day of the year 2000", "0 0 29 2 *", "1997-01-01/2001-01-01", "2000-02-29T00:00"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var want []string
			for _, tick := range strings.Fields(tt.want) {
				want = append(want, shortRange(utc(tick), utc(tick).Add(time.Minute)))
			}
			coverage{tt.name, cron("", tt.expression, time.Minute), tt.within, strings.Join(want, " ")}.run(t)
		})
	}
}

func TestCronPeriod(t *testing.T) {
	for _, tt := range []coverage{
		{"a day every Friday", cron("", "0 0 * * FRI", 24*time.Hour),
			"2026-06-01/2026-06-15", "2026-06-05/2026-06-06 2026-06-12/2026-06-13"},
		{"hours that touch are one interval", cron("", "0 9-11 * * *", time.Hour), "2026-06-01/2026-06-02", "2026-06-01T09:00/12:00"},
		{"a minute short of the next tick is a minute closed", cron("", "0 9-10 * * *", 59*time.Minute),
			"2026-06-01/2026-06-02", "2026-06-01T09:00/09:59 2026-06-01T10:00/10:59"},
		{"hourly for an hour less a minute is a minute closed", cron("", "0 * * * *", 59*time.Minute),
			"2026-06-01/02:00", "2026-06-01/00:59 2026-06-01T01:00/01:59"},
		{"every seven minutes for six is closed before the hour too", cron("", "*/7 * * * *", 6*time.Minute),
			"2026-06-01T00:42/01:07", "2026-06-01T00:42/00:48 2026-06-01T00:49/00:55 2026-06-01T00:56/01:06"},
		{"a duration of the widest distance in a day never ends", cron("", "0 1,5,17 * * *", 12*time.Hour),
			"2026-06-01/2027-06-01", "2026-06-01/2027-06-01"},
		{"a duration a minute less than the widest distance in a day ends once a day", cron("", "0 1,5,17 * * *", 12*time.Hour-time.Minute),
			"2026-06-01T12:00/2026-06-02T12:00", "2026-06-01T12:00/16:59 2026-06-01T17:00/2026-06-02T12:00"},
		{"every minute of weekdays", cron("", "* * * * MON-FRI", time.Minute),
			"2026-06-01/2026-06-15", "2026-06-01/2026-06-06 2026-06-08/2026-06-13"},
		{"every minute but in December", cron("", "* * * 1-11 *", 2*time.Minute),
			"2026-06-01/2027-06-01", "2026-06-01/2026-12-01T00:01 2027-01-01/2027-06-01"},
		{"a duration beyond the period of the cron never ends", cron("Europe/Oslo", "0 0 * * *", 36*time.Hour),
			"2026-01-01/2028-01-01", "2026-01-01/2028-01-01"},
		{"a duration beyond the period of the cron lasts from the last tick", cron("", "0 12 * * MON,TUE", 36*time.Hour),
			"2026-06-01/2026-06-08", "2026-06-01T12:00/2026-06-04"},
		{"half a minute of a duration counts", cron("", "0 12 1 * *", 90*time.Second),
			"2026-06-01/2026-06-08", "2026-06-01T12:00/12:01:30"},
		{"the longest duration from one leap day does not reach the next", cron("", "0 0 29 2 *", 366*24*time.Hour),
			"2028-01-01/2033-01-01", "2028-02-29/2029-03-01 2032-02-29/2033-01-01"},
	} {
		t.Run(tt.name, tt.run)
	}
}
