package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestCronPeriodInGap(t *testing.T) {
	for _, tt := range []coverage{
		{"a tick in the gap is read with the offset before it", cron("Europe/Oslo", "30 2 * * *", 10*time.Minute),
			"2026-03-29/2026-03-30", "2026-03-29T01:30/01:40"},
		{"the first second of the gap is in it", cron("Europe/Oslo", "0 2 * * *", 10*time.Minute),
			"2026-03-29/2026-03-30", "2026-03-29T01:00/01:10"},
		{"Cairo's missing midnight is not lost", cron("Africa/Cairo", "0 0 * * *", 30*time.Minute),
			"2026-04-22T12:00/2026-04-25T12:00", "2026-04-22T22:00/22:30 2026-04-23T22:00/22:30 2026-04-24T21:00/21:30"},
		{"ticks in the gap coincide with those after it", cron("Europe/Oslo", "*/30 * * * *", 10*time.Minute),
			"2026-03-29T00:20/02:20", "2026-03-29T00:30/00:40 2026-03-29T01:00/01:10 2026-03-29T01:30/01:40 2026-03-29T02:00/02:10"},
		{"every hour ticks an hour after the last one, and by the new clock", cron("Australia/Lord_Howe", "0 * * * *", 5*time.Minute),
			"2026-10-03T14:00/17:30", "2026-10-03T14:30/14:35 2026-10-03T15:30/15:35 2026-10-03T16:00/16:05 2026-10-03T17:00/17:05"},
		{"every other hour loses no tick either", cron("Europe/Oslo", "30 */2 * * *", 10*time.Minute),
			"2026-03-28T23:00/2026-03-29T03:00", "2026-03-28T23:30/23:40 2026-03-29T01:30/01:40 2026-03-29T02:30/02:40"},
		{"a tick in a gap of half an hour comes after a later one behind it", cron("Australia/Lord_Howe", "20,35 2 * * *", 5*time.Minute),
			"2026-10-03T12:00/2026-10-04T12:00", "2026-10-03T15:35/15:40 2026-10-03T15:50/15:55"},
		{"a tick in a gap of two hours comes after a later one behind it", cron("America/St_Johns", "50 1-2 * * *", 10*time.Minute),
			"1988-04-03/1988-04-04", "1988-04-03T04:20/04:30 1988-04-03T05:20/05:30"},
		{"Samoa's skipped day keeps its ticks", cron("Pacific/Apia", "0 9 30 12 *", time.Hour),
			"2011-12-25/2012-01-05", "2011-12-30T19:00/20:00"},
		{"Samoa's skipped day coincides with the one after it", cron("Pacific/Apia", "0 9 * * *", time.Hour),
			"2011-12-29T12:00/2012-01-01", "2011-12-29T19:00/20:00 2011-12-30T19:00/20:00 2011-12-31T19:00/20:00"},
		{"Newfoundland's gap began at a minute past midnight", cron("America/St_Johns", "0-2 0 * * *", time.Minute),
			"2006-04-02/2006-04-03", "2006-04-02T03:30/03:33"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestCronDurationIsElapsedTime(t *testing.T) {
	for _, tt := range []coverage{
		{"eight hours from 22:00 end at seven when an hour is skipped", cron("Europe/Oslo", "0 22 * * SAT", 8*time.Hour),
			"2026-03-28T12:00/2026-03-29T12:00", "2026-03-28T21:00/2026-03-29T05:00"},
		{"eight hours from 22:00 end at five when an hour is repeated", cron("Europe/Oslo", "0 22 * * SAT", 8*time.Hour),
			"2026-10-24T12:00/2026-10-25T12:00", "2026-10-24T20:00/2026-10-25T04:00"},
		{"24 hours from midnight leave an hour of a day of 25", cron("Europe/Oslo", "0 0 * * *", 24*time.Hour),
			"2026-10-24T12:00/2026-10-26T12:00", "2026-10-24T12:00/2026-10-25T22:00 2026-10-25T23:00/2026-10-26T12:00"},
		{"24 hours from midnight overlap on a day of 23", cron("Europe/Oslo", "0 0 * * *", 24*time.Hour),
			"2026-03-28T12:00/2026-03-30T12:00", "2026-03-28T12:00/2026-03-30T12:00"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestRareCronIsFoundInAnySeason(t *testing.T) {
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{
		cron("Europe/Oslo", "0 0 29 2 *", time.Hour),
	}})
	got := plan.Decide(utc("2096-03-01T00:00:00Z")).Next
	if want := utc("2104-02-28T23:00:00Z"); !got.At.Equal(want) || got.State != schedule.Opened {
		t.Errorf("next is %+v, want %s", got, want)
	}
}
