package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

var weekdays = []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}

func TestWeeklyPeriod(t *testing.T) {
	for _, tt := range []stretch{
		{
			name:   "a day at work is open from its start to the second before its end",
			period: weekly("", "09:00", "17:00", time.Tuesday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-08T00:00:00Z",
			want: []string{"2026-06-02T09:00:00Z/2026-06-02T17:00:00Z"},
		},
		{
			name:   "a Friday night is open on Saturday and a Thursday night is not part of it",
			period: weekly("Europe/Oslo", "22:00", "05:00", time.Friday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-15T00:00:00Z",
			want: []string{
				"2026-06-05T20:00:00Z/2026-06-06T03:00:00Z",
				"2026-06-12T20:00:00Z/2026-06-13T03:00:00Z",
			},
		},
		{
			name:   "weekday nights leave Saturday and Sunday night out",
			period: weekly("Europe/Oslo", "22:00", "05:00", weekdays...),
			from:   "2026-06-04T12:00:00Z", until: "2026-06-09T12:00:00Z",
			want: []string{
				"2026-06-04T20:00:00Z/2026-06-05T03:00:00Z",
				"2026-06-05T20:00:00Z/2026-06-06T03:00:00Z",
				"2026-06-08T20:00:00Z/2026-06-09T03:00:00Z",
			},
		},
		{
			name:   "a start that is the end lasts for a day",
			period: weekly("", "09:00", "09:00", time.Wednesday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-08T00:00:00Z",
			want: []string{"2026-06-03T09:00:00Z/2026-06-04T09:00:00Z"},
		},
		{
			name:   "midnight to midnight is the whole day",
			period: weekly("", "00:00", "00:00", time.Wednesday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-08T00:00:00Z",
			want: []string{"2026-06-03T00:00:00Z/2026-06-04T00:00:00Z"},
		},
		{
			name:   "24:00 is the end of the same day",
			period: weekly("", "18:00", "24:00", time.Wednesday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-08T00:00:00Z",
			want: []string{"2026-06-03T18:00:00Z/2026-06-04T00:00:00Z"},
		},
		{
			name:   "midnight to 24:00 is one day and not two",
			period: weekly("", "00:00", "24:00", time.Wednesday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-08T00:00:00Z",
			want: []string{"2026-06-03T00:00:00Z/2026-06-04T00:00:00Z"},
		},
		{
			name:   "whole days that touch are one interval",
			period: weekly("", "00:00", "24:00", time.Sunday, time.Saturday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-15T00:00:00Z",
			want: []string{
				"2026-06-06T00:00:00Z/2026-06-08T00:00:00Z",
				"2026-06-13T00:00:00Z/2026-06-15T00:00:00Z",
			},
		},
		{
			name:   "no days means all seven, which at 24 hours never ends",
			period: weekly("Europe/Oslo", "13:00", "13:00"),
			from:   "2026-01-01T00:00:00Z", until: "2028-01-01T00:00:00Z",
			want: []string{"2026-01-01T00:00:00Z/2028-01-01T00:00:00Z"},
		},
		{
			name:   "a day that is named twice counts once",
			period: weekly("", "09:00", "10:00", time.Monday, time.Monday),
			from:   "2026-06-01T00:00:00Z", until: "2026-06-08T00:00:00Z",
			want: []string{"2026-06-01T09:00:00Z/2026-06-01T10:00:00Z"},
		},
		{
			name:   "a range that begins inside the period begins with it",
			period: weekly("", "22:00", "05:00", time.Friday),
			from:   "2026-06-06T03:00:00Z", until: "2026-06-06T04:00:00Z",
			want: []string{"2026-06-06T03:00:00Z/2026-06-06T04:00:00Z"},
		},
		{
			name:   "the end is not part of the period",
			period: weekly("", "22:00", "05:00", time.Friday),
			from:   "2026-06-06T05:00:00Z", until: "2026-06-07T05:00:00Z",
		},
		{
			name:   "dates before 1970 have weekdays too",
			period: weekly("", "00:00", "24:00", time.Wednesday),
			from:   "1969-12-29T00:00:00Z", until: "1970-01-05T00:00:00Z",
			want: []string{"1969-12-31T00:00:00Z/1970-01-01T00:00:00Z"},
		},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestDatedPeriod(t *testing.T) {
	for _, tt := range []stretch{
		{
			name:   "from is part of it and until is not",
			period: dated("", "2026-12-19T00:00:00Z", "2027-01-04T00:00:00Z"),
			from:   "2026-01-01T00:00:00Z", until: "2028-01-01T00:00:00Z",
			want: []string{"2026-12-19T00:00:00Z/2027-01-04T00:00:00Z"},
		},
		{
			name:   "without from it has always been",
			period: dated("", "", "2027-01-04T00:00:00Z"),
			from:   "1900-01-01T00:00:00Z", until: "2028-01-01T00:00:00Z",
			want: []string{"1900-01-01T00:00:00Z/2027-01-04T00:00:00Z"},
		},
		{
			name:   "without until it will always be",
			period: dated("", "2026-12-19T00:00:00Z", ""),
			from:   "2026-01-01T00:00:00Z", until: "2999-01-01T00:00:00Z",
			want: []string{"2026-12-19T00:00:00Z/2999-01-01T00:00:00Z"},
		},
		{
			name:   "without either it is always",
			period: dated("", "", ""),
			from:   "1900-01-01T00:00:00Z", until: "2999-01-01T00:00:00Z",
			want: []string{"1900-01-01T00:00:00Z/2999-01-01T00:00:00Z"},
		},
		{
			name:   "an offset in the text changes nothing but the text",
			period: dated("", "2026-12-19T01:00:00+01:00", "2026-12-18T23:00:01-02:00"),
			from:   "2026-01-01T00:00:00Z", until: "2028-01-01T00:00:00Z",
			want: []string{"2026-12-19T00:00:00Z/2026-12-19T01:00:01Z"},
		},
		{
			name:   "a fraction of a second counts as the second that it lies in",
			period: dated("", "2026-12-19T00:00:00.999Z", "2026-12-19T00:00:01.001Z"),
			from:   "2026-01-01T00:00:00Z", until: "2028-01-01T00:00:00Z",
			want: []string{"2026-12-19T00:00:00Z/2026-12-19T00:00:01Z"},
		},
		{
			name:   "the zero period is empty",
			period: schedule.Period{},
			from:   "2026-01-01T00:00:00Z", until: "2028-01-01T00:00:00Z",
		},
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
