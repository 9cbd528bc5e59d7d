package ical_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// bombs returns texts that are expensive for their size, each with the error that it must cause, empty for none.
func bombs() map[string]struct{ text, want string } {
	many := func(n int, lines ...string) string {
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, "BEGIN:VEVENT\nUID:%d\n%s\nEND:VEVENT\n", i, strings.Join(lines, "\n"))
		}
		return strings.TrimSuffix(all.String(), "\n")
	}
	hour, start := "DURATION:PT1H", "DTSTART:20260101T000000Z"
	tooLong, tooMany := "takes too long to evaluate", "has more than 50000 occurrences"
	day := upTo(0, 23) + ";BYMINUTE=" + upTo(0, 59)
	return map[string]struct{ text, want string }{
		"rules that never fire, by the year":  {many(4000, start, hour, "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), ""},
		"rules that never fire, by the day":   {many(4000, start, hour, "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"), ""},
		"rules that never fire, by the month": {many(4000, start, hour, "RRULE:FREQ=MONTHLY;BYDAY=6MO"), ""},
		"rules that never fire and count":     {many(4000, "DTSTART:00010101T000000Z", hour, "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=2"), tooLong},
		"rules that count from the year 1":    {many(4000, "DTSTART:00010101T000000Z", hour, "RRULE:FREQ=DAILY;COUNT=1000000000"), tooLong},
		"weeks that never fire":               {many(4000, start, hour, "RRULE:FREQ=YEARLY;BYWEEKNO=1;BYMONTH=6"), ""},
		"rules without an end from the year 1": {
			many(4000, "DTSTART:00010101T000000Z", hour, "RRULE:FREQ=DAILY"), tooMany,
		},
		"a large interval": {many(4000, start, hour, "RRULE:FREQ=YEARLY;INTERVAL=2147483647;BYMONTH=1;BYSETPOS=-366,366"), ""},
		"an interval of all frequencies": {
			many(1000, start, hour, "RRULE:FREQ=DAILY;INTERVAL=2147483647") + "\n" +
				strings.ReplaceAll(many(1000, start, hour, "RRULE:FREQ=WEEKLY;INTERVAL=2147483647"), "UID:", "UID:w") + "\n" +
				strings.ReplaceAll(many(1000, start, hour, "RRULE:FREQ=MONTHLY;INTERVAL=2147483647"), "UID:", "UID:m"), "",
		},
		"a minute of all days":     {event(start, hour, "RRULE:FREQ=YEARLY;BYDAY=SU,MO,TU,WE,TH,FR,SA;BYHOUR="+day), tooMany},
		"the last of many minutes": {many(1000, start, hour, "RRULE:FREQ=YEARLY;BYSETPOS=-1;BYDAY=SU,MO,TU,WE,TH,FR,SA;BYHOUR="+day), tooLong},
		"a far UNTIL":              {event(start, hour, "RRULE:FREQ=DAILY;UNTIL=99991231T235959Z"), ""},
		"a text of EXDATEs":        {event(start, hour, "RRULE:FREQ=DAILY", "EXDATE:20260101T000000Z"+strings.Repeat(",20260102T000000Z", 60_000)), ""},
		"a text of RDATEs":         {event(start, hour, "RDATE:20260101T000000Z"+strings.Repeat(",20260102T000000Z", 60_000)), tooMany},
		"many parameters and many values": {
			event(start, hour, "EXDATE"+strings.Repeat(";X-A=1", 80_000)+":20260101T000000Z"+strings.Repeat(",20260102T000000Z", 30_000)), "",
		},
		"a text of folds":          {event("DESCRIPTION:"+strings.Repeat("\n x", 240_000), start, hour), ""},
		"a text of BEGIN":          {strings.Repeat("BEGIN:X\n", 110_000) + "X-A:1", `END has "VCALENDAR"`},
		"a text of one property":   {event(start, hour) + "\n" + event(strings.TrimSuffix(strings.Repeat("X-A:1\n", 140_000), "\n"), start, hour), "with different content"},
		"many versions":            {strings.TrimSuffix(strings.Repeat(event(start, hour)+"\n", 5000), "\n"), ""},
		"many changes of one date": {strings.TrimSuffix(strings.Repeat(event("RECURRENCE-ID:20260101T000000Z", start, hour)+"\n", 5000), "\n"), ""},
		"a change of a change":     {event("RECURRENCE-ID:20260102T000000Z", start, hour) + "\n" + event("RECURRENCE-ID:20260101T000000Z", "DTSTART:20260102T000000Z", hour), ""},
		"a zone that changes daily": {
			custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nDTSTART:19700101T000000\nRRULE:FREQ=DAILY"), "",
		},
		"zones that change daily": {
			strings.Join(zonesThatChangeDaily(100), "\n"), "has too many dates",
		},
		"many zones and many TZIDs": {strings.Repeat("BEGIN:VTIMEZONE\nTZID:x\nEND:VTIMEZONE\n", 15_000) + many(4000, "DTSTART;TZID=y:20260101T000000"), "has the unknown TZID"},
		"events that last long":     {many(4000, start, "DURATION:P3000000D", "RRULE:FREQ=DAILY;UNTIL=20270101"), tooMany},
	}
}

func zonesThatChangeDaily(n int) (all []string) {
	for i := range n {
		text := custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nDTSTART:19700101T000000\nRRULE:FREQ=DAILY")
		all = append(all, strings.NewReplacer("Mine", fmt.Sprint("Zone", i), "UID:a", fmt.Sprint("UID:", i)).Replace(text))
	}
	return all
}

// TestWorkIsBounded gives each text ten times as long as it takes on an idle machine.
func TestWorkIsBounded(t *testing.T) {
	for name, tt := range bombs() {
		t.Run(name, func(t *testing.T) {
			text := calendar(tt.text)
			if len(text) > ical.MaxText {
				t.Fatalf("%d bytes", len(text))
			}
			start := time.Now()
			c, err := ical.Read(text, options())
			took := time.Since(start)
			switch {
			case tt.want == "" && err != nil, tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			case took > 10*time.Second:
				t.Errorf("it took %s", took)
			}
			if testing.Verbose() {
				n := 0
				if c != nil {
					n = len(c.Occurrences)
				}
				t.Logf("%s for %d kB, %d occurrences", took, len(text)/1000, n)
			}
		})
	}
}
