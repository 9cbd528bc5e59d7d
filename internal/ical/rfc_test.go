package ical_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// rfcExamples has the examples of RFC 5545 section 3.8.5.3 that do not recur by the hour or minute, as printed there: "(year zone)
// days;days". They start at 9:00 in New York.
var rfcExamples = []struct {
	name, start, rule, want string
}{
	{"daily for 10 occurrences", "19970902", "FREQ=DAILY;COUNT=10", "(1997 EDT) September 2-11"},
	{
		"daily until December 24, 1997", "19970902", "FREQ=DAILY;UNTIL=19971224T000000Z",
		"(1997 EDT) September 2-30;October 1-25 (1997 EST) October 26-31;November 1-30;December 1-23",
	},
	{
		"every other day, forever", "19970902", "FREQ=DAILY;INTERVAL=2",
		"(1997 EDT) September 2,4,6,8,10,12,14,16,18,20,22,24,26,28,30;October 2,4,6,8,10,12,14,16,18,20,22,24" +
			"(1997 EST) October 26,28,30;November 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29;December 1,3 ...",
	},
	{"every 10 days, 5 occurrences", "19970902", "FREQ=DAILY;INTERVAL=10;COUNT=5", "(1997 EDT) September 2,12,22;October 2,12"},
	{
		"every day in January, for 3 years, by the year", "19980101", "FREQ=YEARLY;UNTIL=20000131T140000Z;BYMONTH=1;BYDAY=SU,MO,TU,WE,TH,FR,SA",
		"(1998 EST) January 1-31 (1999 EST) January 1-31 (2000 EST) January 1-31",
	},
	{
		"every day in January, for 3 years, by the day", "19980101", "FREQ=DAILY;UNTIL=20000131T140000Z;BYMONTH=1",
		"(1998 EST) January 1-31 (1999 EST) January 1-31 (2000 EST) January 1-31",
	},
	{
		"weekly for 10 occurrences", "19970902", "FREQ=WEEKLY;COUNT=10",
		"(1997 EDT) September 2,9,16,23,30;October 7,14,21 (1997 EST) October 28;November 4",
	},
	{
		"weekly until December 24, 1997", "19970902", "FREQ=WEEKLY;UNTIL=19971224T000000Z",
		"(1997 EDT) September 2,9,16,23,30;October 7,14,21 (1997 EST) October 28;November 4,11,18,25;December 2,9,16,23",
	},
	{
		"every other week, forever", "19970902", "FREQ=WEEKLY;INTERVAL=2;WKST=SU",
		"(1997 EDT) September 2,16,30;October 14 (1997 EST) October 28;November 11,25;December 9,23 (1998 EST) January 6,20;February 3,17 ...",
	},
	{
		"weekly on Tuesday and Thursday for five weeks, until", "19970902", "FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH",
		"(1997 EDT) September 2,4,9,11,16,18,23,25,30;October 2",
	},
	{
		"weekly on Tuesday and Thursday for five weeks, counted", "19970902", "FREQ=WEEKLY;COUNT=10;WKST=SU;BYDAY=TU,TH",
		"(1997 EDT) September 2,4,9,11,16,18,23,25,30;October 2",
	},
	{
		"every other week on Monday, Wednesday, and Friday until December 24, 1997", "19970901",
		"FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR",
		"(1997 EDT) September 1,3,5,15,17,19,29;October 1,3,13,15,17" +
			"(1997 EST) October 27,29,31;November 10,12,14,24,26,28;December 8,10,12,22",
	},
	{
		"every other week on Tuesday and Thursday, for 8 occurrences", "19970902", "FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH",
		"(1997 EDT) September 2,4,16,18,30;October 2,14,16",
	},
	{
		"monthly on the first Friday for 10 occurrences", "19970905", "FREQ=MONTHLY;COUNT=10;BYDAY=1FR",
		"(1997 EDT) September 5;October 3 (1997 EST) November 7;December 5 (1998 EST) January 2;February 6;March 6;April 3 (1998 EDT) May 1;June 5",
	},
	{
		"monthly on the first Friday until December 24, 1997", "19970905", "FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR",
		"(1997 EDT) September 5;October 3 (1997 EST) November 7;December 5",
	},
	{
		"every other month on the first and last Sunday of the month for 10 occurrences", "19970907",
		"FREQ=MONTHLY;INTERVAL=2;COUNT=10;BYDAY=1SU,-1SU",
		"(1997 EDT) September 7,28 (1997 EST) November 2,30 (1998 EST) January 4,25;March 1,29 (1998 EDT) May 3,31",
	},
	{
		"monthly on the second-to-last Monday of the month for 6 months", "19970922", "FREQ=MONTHLY;COUNT=6;BYDAY=-2MO",
		"(1997 EDT) September 22;October 20 (1997 EST) November 17;December 22 (1998 EST) January 19;February 16",
	},
	{
		"monthly on the third-to-the-last day of the month, forever", "19970928", "FREQ=MONTHLY;BYMONTHDAY=-3",
		"(1997 EDT) September 28 (1997 EST) October 29;November 28;December 29 (1998 EST) January 29;February 26 ...",
	},
	{
		"monthly on the 2nd and 15th of the month for 10 occurrences", "19970902", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15",
		"(1997 EDT) September 2,15;October 2,15 (1997 EST) November 2,15;December 2,15 (1998 EST) January 2,15",
	},
	{
		"monthly on the first and last day of the month for 10 occurrences", "19970930", "FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1",
		"(1997 EDT) September 30;October 1 (1997 EST) October 31;November 1,30;December 1,31 (1998 EST) January 1,31;February 1",
	},
	{
		"every 18 months on the 10th thru 15th of the month for 10 occurrences", "19970910",
		"FREQ=MONTHLY;INTERVAL=18;COUNT=10;BYMONTHDAY=10,11,12,13,14,15",
		"(1997 EDT) September 10,11,12,13,14,15 (1999 EST) March 10,11,12,13",
	},
	{
		"every Tuesday, every other month", "19970902", "FREQ=MONTHLY;INTERVAL=2;BYDAY=TU",
		"(1997 EDT) September 2,9,16,23,30 (1997 EST) November 4,11,18,25 (1998 EST) January 6,13,20,27;March 3,10,17,24,31 ...",
	},
	{
		"yearly in June and July for 10 occurrences", "19970610", "FREQ=YEARLY;COUNT=10;BYMONTH=6,7",
		"(1997 EDT) June 10;July 10 (1998 EDT) June 10;July 10 (1999 EDT) June 10;July 10 (2000 EDT) June 10;July 10 (2001 EDT) June 10;July 10",
	},
	{
		"every other year on January, February, and March for 10 occurrences", "19970310", "FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3",
		"(1997 EST) March 10 (1999 EST) January 10;February 10;March 10 (2001 EST) January 10;February 10;March 10" +
			"(2003 EST) January 10;February 10;March 10",
	},
	{
		"every third year on the 1st, 100th, and 200th day for 10 occurrences", "19970101",
		"FREQ=YEARLY;INTERVAL=3;COUNT=10;BYYEARDAY=1,100,200",
		"(1997 EST) January 1 (1997 EDT) April 10;July 19 (2000 EST) January 1 (2000 EDT) April 9;July 18" +
			"(2003 EST) January 1 (2003 EDT) April 10;July 19 (2006 EST) January 1",
	},
	{"every 20th Monday of the year, forever", "19970519", "FREQ=YEARLY;BYDAY=20MO", "(1997 EDT) May 19 (1998 EDT) May 18 (1999 EDT) May 17 ..."},
	{
		"Monday of week number 20, forever", "19970512", "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
		"(1997 EDT) May 12 (1998 EDT) May 11 (1999 EDT) May 17 ...",
	},
	{
		"every Thursday in March, forever", "19970313", "FREQ=YEARLY;BYMONTH=3;BYDAY=TH",
		"(1997 EST) March 13,20,27 (1998 EST) March 5,12,19,26 (1999 EST) March 4,11,18,25 ...",
	},
	{
		"every Thursday, but only during June, July, and August, forever", "19970605", "FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8",
		"(1997 EDT) June 5,12,19,26;July 3,10,17,24,31;August 7,14,21,28 (1998 EDT) June 4,11,18,25;July 2,9,16,23,30;August 6,13,20,27" +
			"(1999 EDT) June 3,10,17,24;July 1,8,15,22,29;August 5,12,19,26 ...",
	},
	{
		"every Friday the 13th, forever, without DTSTART", "19970902",
		"FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13\nEXDATE;TZID=America/New_York:19970902T090000",
		"(1998 EST) February 13;March 13;November 13 (1999 EDT) August 13 (2000 EDT) October 13 ...",
	},
	{
		"the first Saturday that follows the first Sunday of the month, forever", "19970913", "FREQ=MONTHLY;BYDAY=SA;BYMONTHDAY=7,8,9,10,11,12,13",
		"(1997 EDT) September 13;October 11 (1997 EST) November 8;December 13 (1998 EST) January 10;February 7;March 7" +
			"(1998 EDT) April 11;May 9;June 13 ...",
	},
	{
		"every 4 years, the first Tuesday after a Monday in November, forever", "19961105",
		"FREQ=YEARLY;INTERVAL=4;BYMONTH=11;BYDAY=TU;\n BYMONTHDAY=2,3,4,5,6,7,8",
		"(1996 EST) November 5 (2000 EST) November 7 (2004 EST) November 2 ...",
	},
	{
		"the third instance into the month of one of Tuesday, Wednesday, or Thursday, for the next 3 months", "19970904",
		"FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "(1997 EDT) September 4;October 7 (1997 EST) November 6",
	},
	{
		"the second-to-last weekday of the month", "19970929", "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
		"(1997 EDT) September 29 (1997 EST) October 30;November 27;December 30 (1998 EST) January 29;February 26;March 30 ...",
	},
	{"days that WKST=MO makes", "19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "(1997 EDT) August 5,10,19,24"},
	{"days that WKST=SU makes", "19970805", "FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=SU", "(1997 EDT) August 5,17,19,31"},
	{
		"an invalid date is ignored", "20070115", "FREQ=MONTHLY;BYMONTHDAY=15,30;COUNT=5",
		"(2007 EST) January 15,30;February 15 (2007 EDT) March 15,30",
	},
}

// printed returns the instants of dates that are printed as in RFC 5545, at 9:00 in New York.
func printed(t *testing.T, text string) (all []string) {
	t.Helper()
	for _, part := range regexp.MustCompile(`\((\d{4}) (E[SD]T)\) ([^(.]+)`).FindAllStringSubmatch(text, -1) {
		offset := map[string]string{"EST": "-05:00", "EDT": "-04:00"}[part[2]]
		for month := range strings.SplitSeq(part[3], ";") {
			name, days, _ := strings.Cut(strings.TrimSpace(month), " ")
			for days := range strings.SplitSeq(days, ",") {
				first, last, isRange := strings.Cut(days, "-")
				if !isRange {
					last = first
				}
				from, err := strconv.Atoi(first)
				if err != nil {
					t.Fatal(err)
				}
				until, err := strconv.Atoi(last)
				if err != nil {
					t.Fatal(err)
				}
				for d := from; d <= until; d++ {
					at, err := time.Parse("2006 January 2 15:04 -07:00", fmt.Sprintf("%s %s %d 09:00 %s", part[1], name, d, offset))
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, at.UTC().Format(time.RFC3339))
				}
			}
		}
	}
	return all
}

func TestRecurrenceRuleExamples(t *testing.T) {
	for _, tt := range rfcExamples {
		t.Run(tt.name, func(t *testing.T) {
			want := printed(t, tt.want)
			until := utc("2030-01-01T00:00:00Z")
			if strings.HasSuffix(tt.want, "...") {
				until = utc(want[len(want)-1]).Add(time.Minute)
			}
			text := calendar(event("DTSTART;TZID=America/New_York:"+tt.start+"T090000", "DURATION:PT1H", "RRULE:"+tt.rule))
			c := mustRead(t, text, ical.Options{Zone: mustZone("UTC"), From: utc("1990-01-01T00:00:00Z"), Until: until})
			var got []string
			for _, o := range c.Occurrences {
				got = append(got, o.Start.Format(time.RFC3339))
				if o.End.Sub(o.Start) != time.Hour {
					t.Errorf("%s lasts %s", o.Start, o.End.Sub(o.Start))
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%q, want\n%q", got, want)
			}
			for i, at := range want {
				// Occurrences before From are not evaluated one by one, which must make no difference.
				c := mustRead(t, text, ical.Options{Zone: mustZone("UTC"), From: utc(at), Until: until})
				if len(c.Occurrences) != len(want)-i {
					t.Errorf("from %s on: %q", at, show(c))
				}
			}
		})
	}
}

func TestTimeOfDayExamples(t *testing.T) {
	text := calendar(event(
		"DTSTART;TZID=America/New_York:19970902T090000", "DURATION:PT1M",
		"RRULE:FREQ=DAILY;BYHOUR=9,10,11,12,13,14,15,16;BYMINUTE=0,20,40",
	))
	c := mustRead(t, text, ical.Options{Zone: mustZone("UTC"), From: utc("1997-09-01T00:00:00Z"), Until: utc("1997-09-04T00:00:00Z")})
	if len(c.Occurrences) != 48 {
		t.Fatalf("%d occurrences in two days", len(c.Occurrences))
	}
	for i, o := range c.Occurrences {
		if want := utc("1997-09-02T13:00:00Z").AddDate(0, 0, i/24).Add(time.Duration(i%24) * 20 * time.Minute); !o.Start.Equal(want) {
			t.Errorf("%s, want %s", o.Start, want)
		}
	}
}

// TestEventExamples reads the examples of RFC 5545 sections 3.6.1, 3.8.5.1 and 3.8.5.2.
func TestEventExamples(t *testing.T) {
	for _, tt := range []struct {
		name, event string
		want        []string
		notCounted  string
	}{
		{
			"a meeting that takes up time",
			"BEGIN:VEVENT\nUID:19970901T130000Z-123401@example.com\nDTSTAMP:19970901T130000Z\nDTSTART:19970903T163000Z\nDTEND:19970903T190000Z\n" +
				"SUMMARY:Annual Employee Review\nCLASS:PRIVATE\nCATEGORIES:BUSINESS,HUMAN RESOURCES\nEND:VEVENT",
			[]string{"1997-09-03T16:30Z/1997-09-03T19:00Z Annual Employee Review"}, "",
		},
		{
			"a reminder that takes up no time",
			"BEGIN:VEVENT\nUID:19970901T130000Z-123402@example.com\nDTSTAMP:19970901T130000Z\nDTSTART:19970401T163000Z\nDTEND:19970402T010000Z\n" +
				"SUMMARY:Laurel is in sensitivity awareness class.\nCLASS:PUBLIC\nCATEGORIES:BUSINESS,HUMAN RESOURCES\nTRANSP:TRANSPARENT\nEND:VEVENT",
			nil, "TRANSP is TRANSPARENT: it is shown as free",
		},
		{
			"an anniversary that takes up no time",
			"BEGIN:VEVENT\nUID:19970901T130000Z-123403@example.com\nDTSTAMP:19970901T130000Z\nDTSTART;VALUE=DATE:19971102\n" +
				"SUMMARY:Our Blissful Anniversary\nTRANSP:TRANSPARENT\nCLASS:CONFIDENTIAL\nCATEGORIES:ANNIVERSARY,PERSONAL,SPECIAL OCCASION\n" +
				"RRULE:FREQ=YEARLY\nEND:VEVENT",
			nil, "TRANSP is TRANSPARENT: it is shown as free",
		},
		{
			"a festival from a day to a day",
			"BEGIN:VEVENT\nUID:20070423T123432Z-541111@example.com\nDTSTAMP:20070423T123432Z\nDTSTART;VALUE=DATE:20070628\nDTEND;VALUE=DATE:20070709\n" +
				"SUMMARY:Festival International de Jazz de Montreal\nTRANSP:OPAQUE\nEND:VEVENT",
			[]string{"2007-06-27T22:00Z/2007-07-08T22:00Z Festival International de Jazz de Montreal"}, "",
		},
		{
			"dates that are left out", event("DTSTART:19960401T010000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=5", "EXDATE:19960402T010000Z,19960403T010000Z,19960404T010000Z"),
			[]string{"1996-04-01T01:00Z/1996-04-01T02:00Z A", "1996-04-05T01:00Z/1996-04-05T02:00Z A"}, "",
		},
		{
			"dates that are added, with a length of their own",
			event("DTSTART:19960402T010000Z", "DURATION:PT1H", "RDATE;VALUE=PERIOD:19960403T020000Z/19960403T040000Z,\n 19960404T010000Z/PT3H"),
			[]string{"1996-04-02T01:00Z/1996-04-02T02:00Z A", "1996-04-03T02:00Z/1996-04-03T04:00Z A", "1996-04-04T01:00Z/1996-04-04T04:00Z A"}, "",
		},
		{
			"days that are added",
			event("DTSTART;VALUE=DATE:19970101", "RDATE;VALUE=DATE:19970101,19970120,19970217"),
			[]string{"1996-12-31T23:00Z/1997-01-01T23:00Z A", "1997-01-19T23:00Z/1997-01-20T23:00Z A", "1997-02-16T23:00Z/1997-02-17T23:00Z A"}, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := ical.Options{Zone: mustZone("Europe/Oslo"), From: utc("1990-01-01T00:00:00Z"), Until: utc("2010-01-01T00:00:00Z")}
			c := mustRead(t, calendar(tt.event), o)
			if got := show(c); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
			cause := ""
			for _, n := range c.NotCounted {
				cause += n.Cause
			}
			if cause != tt.notCounted {
				t.Errorf("not counted: %q, want %q", cause, tt.notCounted)
			}
		})
	}
}
