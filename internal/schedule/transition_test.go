package schedule_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// Oslo goes from +1 to +2 at 2026-03-29T01:00Z and back at 2026-10-25T01:00Z.
func TestWeeklyPeriodInAGap(t *testing.T) {
	for _, tt := range []stretch{
		{
			name:   "a period inside of the gap is read with the offset before it",
			period: weekly("Europe/Oslo", "02:15", "02:45", time.Sunday),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-29T01:15:00Z/2026-03-29T01:45:00Z"},
		},
		{
			name:   "an end inside of the gap is read with the offset before it",
			period: weekly("Europe/Oslo", "22:00", "02:30", time.Saturday),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-28T21:00:00Z/2026-03-29T01:30:00Z"},
		},
		{
			name:   "a start inside of the gap is read with the offset before it",
			period: weekly("Europe/Oslo", "02:30", "06:00", time.Sunday),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-29T01:30:00Z/2026-03-29T04:00:00Z"},
		},
		{
			name:   "a night across the gap is an hour shorter",
			period: weekly("Europe/Oslo", "22:00", "05:00", time.Saturday),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-28T21:00:00Z/2026-03-29T03:00:00Z"},
		},
		{
			name:   "a period from within the gap to its end has passed before it starts",
			period: weekly("Europe/Oslo", "02:30", "03:00", time.Sunday),
			from:   "2026-03-22T12:00:00Z", until: "2026-04-06T00:00:00Z",
			want: []string{"2026-04-05T00:30:00Z/2026-04-05T01:00:00Z"},
		},
		{
			name:   "the day of the gap is an hour shorter",
			period: weekly("Europe/Oslo", "00:00", "24:00", time.Sunday),
			from:   "2026-03-28T12:00:00Z", until: "2026-03-30T00:00:00Z",
			want: []string{"2026-03-28T23:00:00Z/2026-03-29T22:00:00Z"},
		},
		{
			name:   "half an hour is skipped on Lord Howe",
			period: weekly("Australia/Lord_Howe", "02:10", "02:40", time.Sunday),
			from:   "2026-10-03T00:00:00Z", until: "2026-10-05T00:00:00Z",
			// 02:10 at +10:30 and 02:40 at +11:00 are ten minutes the wrong way
			// round.
		},
		{
			name:   "half an hour is shifted on Lord Howe",
			period: weekly("Australia/Lord_Howe", "02:10", "03:00", time.Sunday),
			from:   "2026-10-03T00:00:00Z", until: "2026-10-05T00:00:00Z",
			want: []string{"2026-10-03T15:40:00Z/2026-10-03T16:00:00Z"},
		},
		{
			name:   "Cairo has no midnight on a day that starts at it all the same",
			period: weekly("Africa/Cairo", "00:00", "02:00", time.Friday),
			from:   "2026-04-23T00:00:00Z", until: "2026-04-25T00:00:00Z",
			want: []string{"2026-04-23T22:00:00Z/2026-04-23T23:00:00Z"},
		},
		{
			name:   "Cairo has no midnight to end a day at",
			period: weekly("Africa/Cairo", "23:00", "24:00", time.Thursday),
			from:   "2026-04-23T00:00:00Z", until: "2026-04-25T00:00:00Z",
			want: []string{"2026-04-23T21:00:00Z/2026-04-23T22:00:00Z"},
		},
		{
			name:   "Samoa had no Friday and works on the Saturday instead",
			period: weekly("Pacific/Apia", "08:00", "17:00", time.Friday),
			from:   "2011-12-25T00:00:00Z", until: "2012-01-03T00:00:00Z",
			want: []string{"2011-12-30T18:00:00Z/2011-12-31T03:00:00Z"},
		},
		{
			name:   "Samoa had no Friday and no night after it",
			period: weekly("Pacific/Apia", "22:00", "05:00", time.Friday),
			from:   "2011-12-25T00:00:00Z", until: "2012-01-08T00:00:00Z",
			want: []string{"2012-01-06T08:00:00Z/2012-01-06T15:00:00Z"},
		},
		{
			name:   "Samoa's Thursday night ends on Saturday",
			period: weekly("Pacific/Apia", "22:00", "05:00", time.Thursday),
			from:   "2011-12-27T00:00:00Z", until: "2012-01-03T00:00:00Z",
			want: []string{"2011-12-30T08:00:00Z/2011-12-30T15:00:00Z"},
		},
		{
			name:   "Newfoundland sprang from a minute past midnight by two hours in 1988",
			period: weekly("America/St_Johns", "00:00", "02:01", time.Sunday),
			from:   "1988-04-02T00:00:00Z", until: "1988-04-04T00:00:00Z",
			want: []string{"1988-04-03T03:30:00Z/1988-04-03T03:31:00Z"},
		},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestWeeklyPeriodInARepeat(t *testing.T) {
	for _, tt := range []stretch{
		{
			name:   "a period inside of the repeated hour happens once and first",
			period: weekly("Europe/Oslo", "02:15", "02:45", time.Sunday),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-26T00:00:00Z",
			want: []string{"2026-10-25T00:15:00Z/2026-10-25T00:45:00Z"},
		},
		{
			name:   "a repeated end means its first occurrence",
			period: weekly("Europe/Oslo", "22:00", "02:30", time.Saturday),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-26T00:00:00Z",
			want: []string{"2026-10-24T20:00:00Z/2026-10-25T00:30:00Z"},
		},
		{
			name:   "a repeated start means its first occurrence",
			period: weekly("Europe/Oslo", "02:30", "03:00", time.Sunday),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-26T00:00:00Z",
			want: []string{"2026-10-25T00:30:00Z/2026-10-25T02:00:00Z"},
		},
		{
			name:   "the end of the repeated hour is not repeated",
			period: weekly("Europe/Oslo", "02:00", "03:00", time.Sunday),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-26T00:00:00Z",
			want: []string{"2026-10-25T00:00:00Z/2026-10-25T02:00:00Z"},
		},
		{
			name:   "a night across the repeated hour is an hour longer",
			period: weekly("Europe/Oslo", "22:00", "05:00", time.Saturday),
			from:   "2026-10-24T12:00:00Z", until: "2026-10-26T00:00:00Z",
			want: []string{"2026-10-24T20:00:00Z/2026-10-25T04:00:00Z"},
		},
		{
			name:   "half an hour is repeated on Lord Howe",
			period: weekly("Australia/Lord_Howe", "01:40", "02:00", time.Sunday),
			from:   "2026-04-04T00:00:00Z", until: "2026-04-05T12:00:00Z",
			// 02:00 itself comes once only: at the first it is 01:30 again.
			want: []string{"2026-04-04T14:40:00Z/2026-04-04T15:30:00Z"},
		},
		{
			name:   "Cairo's Thursday has 25 hours when its last one is repeated",
			period: weekly("Africa/Cairo", "23:00", "24:00", time.Thursday),
			from:   "2026-10-29T00:00:00Z", until: "2026-10-31T00:00:00Z",
			want: []string{"2026-10-29T20:00:00Z/2026-10-29T22:00:00Z"},
		},
		{
			name:   "Newfoundland's midnight came twice in 2006 and the first ends the day",
			period: weekly("America/St_Johns", "23:30", "24:00", time.Saturday),
			from:   "2006-10-28T00:00:00Z", until: "2006-10-30T00:00:00Z",
			want: []string{"2006-10-29T02:00:00Z/2006-10-29T02:30:00Z"},
		},
		{
			name:   "Newfoundland's Sunday began in 2006 at the first of two midnights",
			period: weekly("America/St_Johns", "00:00", "00:01", time.Sunday),
			from:   "2006-10-28T00:00:00Z", until: "2006-10-30T00:00:00Z",
			want: []string{"2006-10-29T02:30:00Z/2006-10-29T03:31:00Z"},
		},
		{
			name:   "Kwajalein moved across the date line to a day later in 1993",
			period: weekly("Pacific/Kwajalein", "12:00", "13:00", time.Saturday),
			from:   "1993-08-19T00:00:00Z", until: "1993-08-23T00:00:00Z",
			want: []string{"1993-08-22T00:00:00Z/1993-08-22T01:00:00Z"},
		},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestFridayNightIsOpenOnSaturdayAtThree(t *testing.T) {
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{
		weekly("Europe/Oslo", "22:00", "05:00", time.Friday),
	}})
	for _, tt := range []struct {
		name string
		at   string
		want schedule.State
	}{
		{"Friday at three is closed", "2026-06-05T03:00:00+02:00", schedule.Closed},
		{"Friday at 21:59:59 is closed", "2026-06-05T21:59:59+02:00", schedule.Closed},
		{"Friday at 22:00 is opened", "2026-06-05T22:00:00+02:00", schedule.Opened},
		{"Saturday at three is opened", "2026-06-06T03:00:00+02:00", schedule.Opened},
		{"Saturday at 04:59:59.999 is opened", "2026-06-06T04:59:59.999+02:00", schedule.Opened},
		{"Saturday at five is closed", "2026-06-06T05:00:00+02:00", schedule.Closed},
		{"Sunday at three is closed", "2026-06-07T03:00:00+02:00", schedule.Closed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := plan.Decide(utc(tt.at)).State; got != tt.want {
				t.Errorf("%s", got)
			}
		})
	}
}
