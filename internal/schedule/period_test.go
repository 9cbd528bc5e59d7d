package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

var weekdays = []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}

func TestWeeklyPeriod(t *testing.T) {
	for _, tt := range []coverage{
		{"a day at work is open from its start to the second before its end", weekly("", "09:00", "17:00", time.Tuesday),
			"2026-06-01/2026-06-08", "2026-06-02T09:00/17:00"},
		{"a Friday night is open on Saturday and a Thursday night is not part of it", weekly("Europe/Oslo", "22:00", "05:00", time.Friday),
			"2026-06-01/2026-06-15", "2026-06-05T20:00/2026-06-06T03:00 2026-06-12T20:00/2026-06-13T03:00"},
		{"weekday nights leave Saturday and Sunday night out", weekly("Europe/Oslo", "22:00", "05:00", weekdays...),
			"2026-06-04T12:00/2026-06-09T12:00", "2026-06-04T20:00/2026-06-05T03:00 2026-06-05T20:00/2026-06-06T03:00 2026-06-08T20:00/2026-06-09T03:00"},
		{"a start that is the end lasts for a day", weekly("", "09:00", "09:00", time.Wednesday),
			"2026-06-01/2026-06-08", "2026-06-03T09:00/2026-06-04T09:00"},
		{"midnight to midnight is the whole day", weekly("", "00:00", "00:00", time.Wednesday),
			"2026-06-01/2026-06-08", "2026-06-03/2026-06-04"},
		{"24:00 is the end of the same day", weekly("", "18:00", "24:00", time.Wednesday),
			"2026-06-01/2026-06-08", "2026-06-03T18:00/2026-06-04"},
		{"midnight to 24:00 is one day and not two", weekly("", "00:00", "24:00", time.Wednesday),
			"2026-06-01/2026-06-08", "2026-06-03/2026-06-04"},
		{"whole days that touch are one interval", weekly("", "00:00", "24:00", time.Sunday, time.Saturday),
			"2026-06-01/2026-06-15", "2026-06-06/2026-06-08 2026-06-13/2026-06-15"},
		{"no days means all seven, which at 24 hours never ends", weekly("Europe/Oslo", "13:00", "13:00"),
			"2026-01-01/2028-01-01", "2026-01-01/2028-01-01"},
		{"a day that is named twice counts once", weekly("", "09:00", "10:00", time.Monday, time.Monday),
			"2026-06-01/2026-06-08", "2026-06-01T09:00/10:00"},
		{"a range that begins inside the period begins with it", weekly("", "22:00", "05:00", time.Friday),
			"2026-06-06T03:00/04:00", "2026-06-06T03:00/04:00"},
		{"the end is not part of the period", weekly("", "22:00", "05:00", time.Friday), "2026-06-06T05:00/2026-06-07T05:00", ""},
		{"dates before 1970 have weekdays too", weekly("", "00:00", "24:00", time.Wednesday),
			"1969-12-29/1970-01-05", "1969-12-31/1970-01-01"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDatedPeriod(t *testing.T) {
	for _, tt := range []coverage{
		{"from is part of it and until is not", dated("", "2026-12-19T00:00:00Z", "2027-01-04T00:00:00Z"),
			"2026-01-01/2028-01-01", "2026-12-19/2027-01-04"},
		{"without from it has always been", dated("", "", "2027-01-04T00:00:00Z"), "1900-01-01/2028-01-01", "1900-01-01/2027-01-04"},
		{"without until it will always be", dated("", "2026-12-19T00:00:00Z", ""), "2026-01-01/2999-01-01", "2026-12-19/2999-01-01"},
		{"without either it is always", dated("", "", ""), "1900-01-01/2999-01-01", "1900-01-01/2999-01-01"},
		{"an offset in the text changes nothing but the text", dated("", "2026-12-19T01:00:00+01:00", "2026-12-18T23:00:01-02:00"),
			"2026-01-01/2028-01-01", "2026-12-19/01:00:01"},
		{"a fraction of a second counts as the second that it lies in", dated("", "2026-12-19T00:00:00.999Z", "2026-12-19T00:00:01.001Z"),
			"2026-01-01/2028-01-01", "2026-12-19/00:00:01"},
		{"the zero period is empty", schedule.Period{}, "2026-01-01/2028-01-01", ""},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDatedRefuses(t *testing.T) {
	for _, tt := range []struct {
		name        string
		from, until string
	}{
		{"from that is until", "2026-12-19T00:00:00Z", "2026-12-19T00:00:00Z"},
		{"from that is the same instant as until elsewhere", "2026-12-19T00:00:00Z", "2026-12-19T01:00:00+01:00"},
		{"from that is later than until by a second", "2026-12-19T00:00:01Z", "2026-12-19T00:00:00Z"},
		{"from and until within one second", "2026-12-19T00:00:00.1Z", "2026-12-19T00:00:00.9Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if p, err := schedule.Dated("", utc(tt.from), utc(tt.until)); err == nil {
				t.Errorf("accepted as %+v", p)
			}
		})
	}
}

func TestCronRefusesDuration(t *testing.T) {
	expression, err := schedule.ParseCron("0 0 * * *")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name     string
		duration time.Duration
		accepted bool
	}{
		{"zero", 0, false},
		{"a negative hour", -time.Hour, false},
		{"half a minute", 30 * time.Second, false},
		{"a nanosecond less than a minute", time.Minute - 1, false},
		{"no minute", time.Minute, true},
		{"no leap year", 366 * 24 * time.Hour, true},
		{"a nanosecond more than a leap year", 366*24*time.Hour + 1, false},
		{"367 days", 367 * 24 * time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := schedule.Cron("", expression, tt.duration, mustZone("")); (err == nil) != tt.accepted {
				t.Errorf("%s: %v", tt.duration, err)
			}
		})
	}
}

func TestPeriodKeepsItsName(t *testing.T) {
	named := dated("year-end", "2026-12-19T00:00:00Z", "")
	night, nightly := weekly("", "22:00", "05:00"), cron("", "0 22 * * *", time.Hour)
	if named.Name() != "year-end" || night.Name() != "weekly" || nightly.Name() != "cron" {
		t.Errorf("names are %q, %q and %q", named.Name(), night.Name(), nightly.Name())
	}
}
