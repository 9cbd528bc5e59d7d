package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

func TestCronPeriodInAGap(t *testing.T) {
	for _, tt := range []stretch{
		{
			name:   "a tick in the gap is read with the offset before it",
			period: cron("Europe/Oslo", "30 2 * * *", 10*time.Minute),
			from:   "2026-03-29T00:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-29T01:30:00Z/2026-03-29T01:40:00Z"},
		},
		{
			name:   "the first second of the gap is in it",
			period: cron("Europe/Oslo", "0 2 * * *", 10*time.Minute),
			from:   "2026-03-29T00:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-29T01:00:00Z/2026-03-29T01:10:00Z"},
		},
		{
			name:   "Cairo's missing midnight is not lost",
			period: cron("Africa/Cairo", "0 0 * * *", 30*time.Minute),
			from:   "2026-04-22T12:00:00Z", until: "2026-04-25T12:00:00Z",
			want: []string{
				"2026-04-22T22:00:00Z/2026-04-22T22:30:00Z",
				"2026-04-23T22:00:00Z/2026-04-23T22:30:00Z",
				"2026-04-24T21:00:00Z/2026-04-24T21:30:00Z",
			},
		},
		{
			name:   "ticks in the gap coincide with those after it",
			period: cron("Europe/Oslo", "*/30 * * * *", 10*time.Minute),
			from:   "2026-03-29T00:20:00Z", until: "2026-03-29T02:20:00Z",
			want: []string{
				"2026-03-29T00:30:00Z/2026-03-29T00:40:00Z",
				"2026-03-29T01:00:00Z/2026-03-29T01:10:00Z",
				"2026-03-29T01:30:00Z/2026-03-29T01:40:00Z",
				"2026-03-29T02:00:00Z/2026-03-29T02:10:00Z",
			},
		},
		{
			name:   "every hour ticks an hour after the last one, and by the new clock",
			period: cron("Australia/Lord_Howe", "0 * * * *", 5*time.Minute),
			from:   "2026-10-03T14:00:00Z", until: "2026-10-03T17:30:00Z",
			want: []string{
				"2026-10-03T14:30:00Z/2026-10-03T14:35:00Z",
				"2026-10-03T15:30:00Z/2026-10-03T15:35:00Z",
				"2026-10-03T16:00:00Z/2026-10-03T16:05:00Z",
				"2026-10-03T17:00:00Z/2026-10-03T17:05:00Z",
			},
		},
		{
			name:   "every other hour loses no tick either",
			period: cron("Europe/Oslo", "30 */2 * * *", 10*time.Minute),
			from:   "2026-03-28T23:00:00Z", until: "2026-03-29T03:00:00Z",
			want: []string{
				"2026-03-28T23:30:00Z/2026-03-28T23:40:00Z",
				"2026-03-29T01:30:00Z/2026-03-29T01:40:00Z",
				"2026-03-29T02:30:00Z/2026-03-29T02:40:00Z",
			},
		},
		{
			name:   "a tick in a gap of half an hour comes after a later one behind it",
			period: cron("Australia/Lord_Howe", "20,35 2 * * *", 5*time.Minute),
			from:   "2026-10-03T12:00:00Z", until: "2026-10-04T12:00:00Z",
			want: []string{
				"2026-10-03T15:35:00Z/2026-10-03T15:40:00Z",
				"2026-10-03T15:50:00Z/2026-10-03T15:55:00Z",
			},
		},
		{
			name:   "a tick in a gap of two hours comes after a later one behind it",
			period: cron("America/St_Johns", "50 1-2 * * *", 10*time.Minute),
			from:   "1988-04-03T00:00:00Z", until: "1988-04-04T00:00:00Z",
			want: []string{
				"1988-04-03T04:20:00Z/1988-04-03T04:30:00Z",
				"1988-04-03T05:20:00Z/1988-04-03T05:30:00Z",
			},
		},
		{
			name:   "Samoa's skipped day keeps its ticks",
			period: cron("Pacific/Apia", "0 9 30 12 *", time.Hour),
			from:   "2011-12-25T00:00:00Z", until: "2012-01-05T00:00:00Z",
			want: []string{"2011-12-30T19:00:00Z/2011-12-30T20:00:00Z"},
		},
		{
			name:   "Samoa's skipped day coincides with the one after it",
			period: cron("Pacific/Apia", "0 9 * * *", time.Hour),
			from:   "2011-12-29T12:00:00Z", until: "2012-01-01T00:00:00Z",
			want: []string{
				"2011-12-29T19:00:00Z/2011-12-29T20:00:00Z",
				"2011-12-30T19:00:00Z/2011-12-30T20:00:00Z",
				"2011-12-31T19:00:00Z/2011-12-31T20:00:00Z",
			},
		},
		{
			name:   "Newfoundland's gap began at a minute past midnight",
			period: cron("America/St_Johns", "0-2 0 * * *", time.Minute),
			from:   "2006-04-02T00:00:00Z", until: "2006-04-03T00:00:00Z",
			want: []string{"2006-04-02T03:30:00Z/2006-04-02T03:33:00Z"},
		},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestCronDurationIsElapsedTime(t *testing.T) {
	for _, tt := range []stretch{
		{
			name:   "eight hours from 22:00 end at seven when an hour is skipped",
			period: cron("Europe/Oslo", "0 22 * * SAT", 8*time.Hour),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-29T12:00:00Z",
			want: []string{"2026-03-28T21:00:00Z/2026-03-29T05:00:00Z"},
		},
		{
			name:   "eight hours from 22:00 end at five when an hour is repeated",
			period: cron("Europe/Oslo", "0 22 * * SAT", 8*time.Hour),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-25T12:00:00Z",
			want: []string{"2026-10-24T20:00:00Z/2026-10-25T04:00:00Z"},
		},
		{
			name:   "24 hours from midnight leave an hour of a day of 25",
			period: cron("Europe/Oslo", "0 0 * * *", 24*time.Hour),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-26T12:00:00Z",
			want: []string{
				"2026-10-24T12:00:00Z/2026-10-25T22:00:00Z",
				"2026-10-25T23:00:00Z/2026-10-26T12:00:00Z",
			},
		},
		{
			name:   "24 hours from midnight overlap on a day of 23",
			period: cron("Europe/Oslo", "0 0 * * *", 24*time.Hour),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-30T12:00:00Z",
			want: []string{"2026-03-28T12:00:00Z/2026-03-30T12:00:00Z"},
		},
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
