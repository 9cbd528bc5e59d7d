package schedule_test

import (
	"testing"
	"time"
)

// Oslo goes from +1 to +2 at 2026-03-29T01:00Z and back at 2026-10-25T01:00Z.
func TestWeeklyPeriodInGap(t *testing.T) {
	for _, tt := range []coverage{
		{"a period inside of the gap is read with the offset before it", weekly("Europe/Oslo", "02:15", "02:45", time.Sunday),
			"2026-03-28T12:00/2026-03-30", "2026-03-29T01:15/01:45"},
		{"an end inside of the gap is read with the offset before it", weekly("Europe/Oslo", "22:00", "02:30", time.Saturday),
			"2026-03-28T12:00/2026-03-30", "2026-03-28T21:00/2026-03-29T01:30"},
		{"a start inside of the gap is read with the offset before it", weekly("Europe/Oslo", "02:30", "06:00", time.Sunday),
			"2026-03-28T12:00/2026-03-30", "2026-03-29T01:30/04:00"},
		{"a night across the gap is an hour shorter", weekly("Europe/Oslo", "22:00", "05:00", time.Saturday),
			"2026-03-28T12:00/2026-03-30", "2026-03-28T21:00/2026-03-29T03:00"},
		{"a period from within the gap to its end has passed before it starts", weekly("Europe/Oslo", "02:30", "03:00", time.Sunday),
			"2026-03-22T12:00/2026-04-06", "2026-04-05T00:30/01:00"},
		{"the day of the gap is an hour shorter", weekly("Europe/Oslo", "00:00", "24:00", time.Sunday),
			"2026-03-28T12:00/2026-03-30", "2026-03-28T23:00/2026-03-29T22:00"},
		// 02:10 at +10:30 and 02:40 at +11:00 are ten minutes the wrong way
		// round.
		{"half an hour is skipped on Lord Howe", weekly("Australia/Lord_Howe", "02:10", "02:40", time.Sunday), "2026-10-03/2026-10-05", ""},
		{"half an hour is shifted on Lord Howe", weekly("Australia/Lord_Howe", "02:10", "03:00", time.Sunday),
			"2026-10-03/2026-10-05", "2026-10-03T15:40/16:00"},
		{"Cairo has no midnight on a day that starts at it all the same", weekly("Africa/Cairo", "00:00", "02:00", time.Friday),
			"2026-04-23/2026-04-25", "2026-04-23T22:00/23:00"},
		{"Cairo has no midnight to end a day at", weekly("Africa/Cairo", "23:00", "24:00", time.Thursday),
			"2026-04-23/2026-04-25", "2026-04-23T21:00/22:00"},
		{"Samoa had no Friday and works on the Saturday instead", weekly("Pacific/Apia", "08:00", "17:00", time.Friday),
			"2011-12-25/2012-01-03", "2011-12-30T18:00/2011-12-31T03:00"},
		{"Samoa had no Friday and no night after it", weekly("Pacific/Apia", "22:00", "05:00", time.Friday),
			"2011-12-25/2012-01-08", "2012-01-06T08:00/15:00"},
		{"Samoa's Thursday night ends on Saturday", weekly("Pacific/Apia", "22:00", "05:00", time.Thursday),
			"2011-12-27/2012-01-03", "2011-12-30T08:00/15:00"},
		{"Newfoundland sprang from a minute past midnight by two hours in 1988", weekly("America/St_Johns", "00:00", "02:01", time.Sunday),
			"1988-04-02/1988-04-04", "1988-04-03T03:30/03:31"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestWeeklyPeriodInRepeatedHour(t *testing.T) {
	for _, tt := range []coverage{
		{"a period inside of the repeated hour happens once and first", weekly("Europe/Oslo", "02:15", "02:45", time.Sunday),
			"2026-10-24T12:00/2026-10-26", "2026-10-25T00:15/00:45"},
		{"a repeated end means its first occurrence", weekly("Europe/Oslo", "22:00", "02:30", time.Saturday),
			"2026-10-24T12:00/2026-10-26", "2026-10-24T20:00/2026-10-25T00:30"},
		{"a repeated start means its first occurrence", weekly("Europe/Oslo", "02:30", "03:00", time.Sunday),
			"2026-10-24T12:00/2026-10-26", "2026-10-25T00:30/02:00"},
		{"the end of the repeated hour is not repeated", weekly("Europe/Oslo", "02:00", "03:00", time.Sunday),
			"2026-10-24T12:00/2026-10-26", "2026-10-25/02:00"},
		{"a night across the repeated hour is an hour longer", weekly("Europe/Oslo", "22:00", "05:00", time.Saturday),
			"2026-10-24T12:00/2026-10-26", "2026-10-24T20:00/2026-10-25T04:00"},
		// 02:00 itself comes once only: at the first it is 01:30 again.
		{"half an hour is repeated on Lord Howe", weekly("Australia/Lord_Howe", "01:40", "02:00", time.Sunday),
			"2026-04-04/2026-04-05T12:00", "2026-04-04T14:40/15:30"},
		{"Cairo's Thursday has 25 hours when its last one is repeated", weekly("Africa/Cairo", "23:00", "24:00", time.Thursday),
			"2026-10-29/2026-10-31", "2026-10-29T20:00/22:00"},
		{"Newfoundland's midnight came twice in 2006 and the first ends the day",
			weekly("America/St_Johns", "23:30", "24:00", time.Saturday),
			"2006-10-28/2006-10-30", "2006-10-29T02:00/02:30"},
		{"Newfoundland's Sunday began in 2006 at the first of two midnights", weekly("America/St_Johns", "00:00", "00:01", time.Sunday),
			"2006-10-28/2006-10-30", "2006-10-29T02:30/03:31"},
		{"Kwajalein moved across the date line to a day later in 1993", weekly("Pacific/Kwajalein", "12:00", "13:00", time.Saturday),
			"1993-08-19/1993-08-23", "1993-08-22/01:00"},
	} {
		t.Run(tt.name, tt.run)
	}
}
