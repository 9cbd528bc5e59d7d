package ical_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// custom returns an event in a zone whose VTIMEZONE has the given lines in STANDARD.
func custom(line string) string {
	return "BEGIN:VTIMEZONE\nTZID:Mine\nBEGIN:STANDARD\n" + line + "\nEND:STANDARD\nEND:VTIMEZONE\n" + event("DTSTART;TZID=Mine:20260601T100000", "DURATION:PT1H")
}

// rule returns an event with a rule. In calendar, the rule is in line 9.
func rule(text string) string {
	return event("DTSTART:20260601T100000Z", "DURATION:PT1H", "RRULE:"+text)
}

func TestErrorsNameTheLine(t *testing.T) {
	start := "DTSTART:20260601T100000Z"
	for text, want := range map[string]string{
		event(): `line 4: VEVENT has no DTSTART`,
		event("DTSTART;TZID=Mars/Olympus:20260601T100000", "DURATION:PT1H"):                   `line 7: DTSTART has the unknown TZID "Mars/Olympus", and the calendar does not define it in a VTIMEZONE`,
		event("DTSTART;TZID=Local:20260601T100000", "DURATION:PT1H"):                          `line 7: DTSTART has the unknown TZID "Local", and the calendar does not define it in a VTIMEZONE`,
		event("DTSTART;TZID=:20260601T100000", "DURATION:PT1H"):                               `line 7: DTSTART has the parameter TZID="", which is not a value`,
		event("DTSTART;TZID=UTC;TZID=UTC:20260601T100000"):                                    `line 7: DTSTART has the parameter TZID twice`,
		event("DTSTART;TZID:20260601T100000"):                                                 `line 7: DTSTART has the parameter "TZID" without a value`,
		event("DTSTART;TZID=Europe/Oslo:20260601T100000Z"):                                    `line 7: DTSTART has the TZID "Europe/Oslo", but Z at its end means UTC`,
		event("DTSTART;VALUE=DATE;TZID=Europe/Oslo:20260601"):                                 `line 7: DTSTART is a date, but has a TZID, which only times have`,
		event("DTSTART;VALUE=DATE:20260601T100000"):                                           `line 7: DTSTART "20260601T100000" is not a DATE`,
		event("DTSTART;VALUE=DATE-TIME:20260601"):                                             `line 7: DTSTART "20260601" is not a DATE-TIME`,
		event("DTSTART;VALUE=TEXT:20260601"):                                                  `line 7: DTSTART has VALUE="TEXT", but must be a date or a time`,
		event("DTSTART:20260230"):                                                             `line 7: DTSTART "20260230" is neither a date such as 20261224 nor a time such as 20261224T180000`,
		event("DTSTART:20260601T240000Z"):                                                     `line 7: DTSTART "20260601T240000Z" is neither a date such as 20261224 nor a time such as 20261224T180000`,
		event("DTSTART:2026-06-01T10:00"):                                                     `line 7: DTSTART "2026-06-01T10:00" is neither a date such as 20261224 nor a time such as 20261224T180000`,
		event(start, start):                                                                   `line 8: DTSTART occurs twice, first in line 7`,
		event(start):                                                                          `line 4: VEVENT has neither DTEND nor DURATION: an event without a duration closes nothing`,
		event(start, "DTEND:20260601T100000Z"):                                                `line 8: DTEND gives the event no duration, so it would close nothing`,
		event(start, "DTEND:20260601T095959Z"):                                                `line 8: DTEND is before the start of the event`,
		event(start, "DTEND;VALUE=DATE:20260602"):                                             `line 8: DTEND and the start of the event must both be dates or both be times`,
		event(start, "DTEND:20260602T100000Z", "DURATION:PT1H"):                               `line 9: DURATION must not be combined with DTEND (line 8)`,
		event("DTSTART:20260601", "DTEND:20260531"):                                           `line 8: DTEND is before the start of the event`,
		event("DTSTART:20260601", "DURATION:PT24H"):                                           `line 8: DURATION "PT24H" is not a number of days, but the event starts with a date`,
		event(start, "DURATION:PT0S"):                                                         `line 8: DURATION gives the event no duration, so it would close nothing`,
		event(start, "DURATION:-PT1H"):                                                        `line 8: DURATION "-PT1H" is negative`,
		event(start, "DURATION:P"):                                                            `line 8: DURATION "P" is not a duration such as P1D or PT8H30M`,
		event(start, "DURATION:P1Y"):                                                          `line 8: DURATION "P1Y" is not a duration such as P1D or PT8H30M`,
		event(start, "DURATION:P999999999W"):                                                  `line 8: DURATION ends the event after the year 9999`,
		event("STATUS:CANCELED", start):                                                       `line 7: STATUS "CANCELED" is not one of CONFIRMED, TENTATIVE, CANCELLED`,
		event("TRANSP:", start):                                                               `line 7: TRANSP "" is not one of OPAQUE, TRANSPARENT`,
		event("SEQUENCE:one", start):                                                          `line 7: SEQUENCE "one" is not a number from 0`,
		event("DTSTAMP:yesterday", start):                                                     `line 7: DTSTAMP "yesterday" is not a time such as 20261224T180000Z`,
		event("RECURRENCE-ID;RANGE=THISANDFUTURE:20260601T100000Z", start):                    `line 7: RECURRENCE-ID has RANGE="THISANDFUTURE": changing more than one occurrence is not supported`,
		event("RECURRENCE-ID:soon", "STATUS:CANCELLED"):                                       `line 7: RECURRENCE-ID "soon" is neither a date such as 20261224 nor a time such as 20261224T180000`,
		event(start, "DURATION:PT1H", "EXRULE:FREQ=DAILY"):                                    `line 9: EXRULE is not supported: RFC 5545 removed this property`,
		event(start, "DURATION:PT1H", "EXDATE:x"):                                             `line 9: EXDATE "x" is neither a date such as 20261224 nor a time such as 20261224T180000`,
		event(start, "DURATION:PT1H", "RDATE;VALUE=DATE:20260602"):                            `line 9: RDATE and DTSTART must both be dates or both be times`,
		event(start, "DURATION:PT1H", "RDATE:20260602T100000Z/PT1H"):                          `line 9: RDATE "20260602T100000Z/PT1H" must have VALUE=PERIOD and the form start/end`,
		event(start, "DURATION:PT1H", "RDATE;VALUE=PERIOD:20260602T100000Z/20260602T090000Z"): `line 9: RDATE is before the start of the event`,
		event(start, "DURATION:PT1H", "RRULE:FREQ=DAILY", "RRULE:FREQ=WEEKLY"):                `line 10: RRULE occurs twice, first in line 9`,
		event("DTSTART:20260601", "RRULE:FREQ=DAILY;BYHOUR=9"):                                `line 8: RRULE has BYHOUR, BYMINUTE or BYSECOND, but the event starts with a date`,
		event(start, "DURATION:PT1H") + "\n" + event(start, "DURATION:PT2H"):                  `line 10: VEVENT has the duplicate UID "a@example.com" (also on line 4) with different content; SEQUENCE and DTSTAMP do not show which one is later`,

		rule("FREQ=HOURLY"):                       `line 9: RRULE has "FREQ=HOURLY": only DAILY, WEEKLY, MONTHLY and YEARLY are supported`,
		rule("FREQ=SECONDLY;COUNT=3"):             `line 9: RRULE has "FREQ=SECONDLY": only DAILY, WEEKLY, MONTHLY and YEARLY are supported`,
		rule("COUNT=3"):                           `line 9: RRULE has no FREQ`,
		rule("FREQ=DAILY;FREQ=DAILY"):             `line 9: RRULE has "FREQ" twice`,
		rule("FREQ=DAILY;BYEASTER=0"):             `line 9: RRULE has "BYEASTER=0": unknown part`,
		rule("RSCALE=CHINESE;FREQ=YEARLY"):        `line 9: RRULE has "RSCALE=CHINESE": unknown part`,
		rule("FREQ=DAILY;;COUNT=2"):               `line 9: RRULE has "": unknown part`,
		rule("FREQ=DAILY;INTERVAL=0"):             `line 9: RRULE has "INTERVAL=0": must be a number from 1 to 2147483647`,
		rule("FREQ=DAILY;COUNT=-1"):               `line 9: RRULE has "COUNT=-1": must be a number from 1 to 2147483647`,
		rule("FREQ=DAILY;COUNT=2;UNTIL=20270101"): `line 9: RRULE has both COUNT and UNTIL`,
		rule("FREQ=DAILY;UNTIL=never"):            `line 9: RRULE has UNTIL="NEVER", which is neither a date nor a time`,
		rule("FREQ=WEEKLY;WKST=1MO"):              `line 9: RRULE has "WKST=1MO": it is not a day of the week such as MO`,
		rule("FREQ=WEEKLY;BYDAY=MON"):             `line 9: RRULE has "BYDAY=MON": "MON" is not a day of the week such as MO or -1FR`,
		rule("FREQ=WEEKLY;BYDAY=1MO"):             `line 9: RRULE has BYDAY with a number, which is only allowed with FREQ=MONTHLY and FREQ=YEARLY`,
		rule("FREQ=MONTHLY;BYDAY=0MO"):            `line 9: RRULE has "BYDAY=0MO": "0" is not a number from -53 to 53 without 0`,
		rule("FREQ=YEARLY;BYWEEKNO=1;BYDAY=1MO"):  `line 9: RRULE has BYDAY with a number, which is not allowed with BYWEEKNO`,
		rule("FREQ=YEARLY;BYWEEKNO=1;INTERVAL=2"): `line 9: RRULE has BYWEEKNO with INTERVAL or BYSETPOS, which is not supported`,
		rule("FREQ=MONTHLY;BYWEEKNO=1"):           `line 9: RRULE has BYWEEKNO, which is only allowed with FREQ=YEARLY`,
		rule("FREQ=DAILY;BYYEARDAY=1"):            `line 9: RRULE has BYYEARDAY, which is only allowed with FREQ=YEARLY`,
		rule("FREQ=WEEKLY;BYMONTHDAY=1"):          `line 9: RRULE has BYMONTHDAY, which is not allowed with FREQ=WEEKLY`,
		rule("FREQ=YEARLY;BYMONTH=13"):            `line 9: RRULE has "BYMONTH=13": "13" is not a number from 1 to 12`,
		rule("FREQ=YEARLY;BYMONTH=0"):             `line 9: RRULE has "BYMONTH=0": "0" is not a number from 1 to 12`,
		rule("FREQ=MONTHLY;BYSETPOS=1"):           `line 9: RRULE has BYSETPOS without another part that begins with BY`,

		custom("X-NOTHING:1"):                                                                                             `line 6: STANDARD has no TZOFFSETFROM`,
		custom("TZOFFSETFROM:+01:00\nTZOFFSETTO:+0100"):                                                                   `line 7: TZOFFSETFROM "+01:00" is not a UTC offset such as +0100`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+1601"):                                                                    `line 8: TZOFFSETTO is 16h1m0s, which is more than 16 hours`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0100"):                                                                    `line 6: STANDARD has no DTSTART`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0100\nDTSTART:19700101T000000Z"):                                          `line 9: DTSTART must be a local time of the VTIMEZONE`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0100\nDTSTART;TZID=Mine:19700101T000000"):                                 `line 9: DTSTART has the unknown TZID "Mine", and the calendar does not define it in a VTIMEZONE`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0100\nDTSTART:19700101T000000\nRRULE:FREQ=HOURLY"):                        `line 10: RRULE has "FREQ=HOURLY": only DAILY, WEEKLY, MONTHLY and YEARLY are supported`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0100\nDTSTART:19700101T000000\nEXDATE:19700101T000000"):                   `line 10: EXDATE is not supported in a VTIMEZONE`,
		"BEGIN:VTIMEZONE\nTZID:Mine\nEND:VTIMEZONE\n" + event("DTSTART;TZID=Mine:20260601T100000", "DURATION:PT1H"):       `line 4: VTIMEZONE has neither STANDARD nor DAYLIGHT`,
		"BEGIN:VTIMEZONE\nTZID:Mine\nEND:VTIMEZONE\n" + custom("X-A:1"):                                                   `line 7: VTIMEZONE has the same TZID "Mine" as the VTIMEZONE in line 4, but different content`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nDTSTART:19700101T000000\nRDATE;VALUE=PERIOD:19710101T000000/PT1H"):  `line 10: RDATE must be a local time of the VTIMEZONE`,
		custom("TZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nDTSTART:19700101T000000\nRRULE:FREQ=DAILY;BYMINUTE=" + upTo(0, 59)): `line 10: RRULE has too many dates: the VTIMEZONEs up to this line have more than 100000`,

		"BEGIN:VTODO\n" + event(start) + "\nEND:VTODO": `line 5: VEVENT is within "VTODO" of line 4`,
		"BEGIN:VCALENDAR\nEND:VCALENDAR":               `line 4: VCALENDAR is within "VCALENDAR" of line 1`,
		"BEGIN:VEVENT":                                 `line 5: END has "VCALENDAR", but "VEVENT" of line 4 comes first`,
		"END:VCALENDAR\nX-A:1":                         `line 5: X-A is outside of a VCALENDAR`,
		"END:VCALENDAR\nBEGIN:VEVENT":                  `line 5: BEGIN has "VEVENT" outside of a VCALENDAR`,
		"no property":                                  `line 4: TEXT "no property" is not a property: a name and a colon are missing`,
		":no name":                                     `line 4: TEXT ":no name" is not a property: a name and a colon are missing`,
		"X-\u00e4:1":                                   `line 4: TEXT "X-ä:1" is not a property: a name and a colon are missing`,
		"X-LONG" + strings.Repeat("_", 1000):           `line 4: TEXT "X-LONG` + strings.Repeat("_", 54) + `..." is not a property: a name and a colon are missing`,
		`X-A;B="c:d`:                                   `line 4: X-A has no value: there is no colon outside of quotes`,
		"X-A:1\n\xff\xfe":                              `line 5: TEXT is not UTF-8`,
		"X-A:1\n b\n \x00":                             `line 4: TEXT has a NUL byte`,
		strings.Repeat("BEGIN:VEVENT\nEND:VEVENT\n", 5001):                                      `line 10004: VEVENT is one of more than 5000`,
		rule("FREQ=DAILY;BYHOUR=" + upTo(0, 23) + ";BYMINUTE=" + upTo(0, 59)):                   `line 9: RRULE has more than 50000 occurrences up to 2028-01-01`,
		rule("FREQ=DAILY;BYHOUR=" + upTo(0, 23) + ";BYMINUTE=" + upTo(0, 59) + ";BYSECOND=1,2"): `line 9: RRULE has more than 1440 times a day`,
	} {
		t.Run(want, func(t *testing.T) {
			check(t, calendar(text), want)
		})
	}
}

// upTo returns the numbers between two, including both, as a list.
func upTo(from, until int) string {
	var all []string
	for n := from; n <= until; n++ {
		all = append(all, fmt.Sprint(n))
	}
	return strings.Join(all, ",")
}

// check checks that reading a text returns an error.
func check(t *testing.T, text, want string) {
	t.Helper()
	c, err := ical.Read(text, options())
	if err == nil || c != nil {
		t.Fatalf("it is read: %+v", c)
	}
	if err.Error() != want {
		t.Errorf("got\n%s, want\n%s", err, want)
	}
	if at := new(ical.Error); strings.HasPrefix(want, "line") && !errors.As(err, &at) {
		t.Errorf("%T is not an error with a line", err)
	}
}

func TestInvalidCalendars(t *testing.T) {
	for text, want := range map[string]string{
		"":                               `line 1: VCALENDAR is missing: this is not an iCalendar text`,
		"\uFEFF\r\n":                     `line 1: VCALENDAR is missing: this is not an iCalendar text`,
		"\tBEGIN:VCALENDAR":              `line 1: TEXT starts with white space, but no line precedes it that it could continue`,
		"<html>":                         `line 1: TEXT "<html>" is not a property: a name and a colon are missing`,
		event():                          `line 1: BEGIN has "VEVENT" outside of a VCALENDAR`,
		"BEGIN:VCALENDAR\nBEGIN:VEVENT":  `line 2: VEVENT has no END: the text is cut off`,
		strings.Repeat("x", 1<<20+1):     `has 1048577 bytes, more than 1048576`,
		"BEGIN:VCALENDAR\rEND:VCALENDAR": `line 1: BEGIN has "VCALENDAR\rEND:VCALENDAR" outside of a VCALENDAR`,
	} {
		check(t, text, want)
	}
	if _, err := ical.Read(calendar(), ical.Options{Zone: mustZone("UTC"), From: time.Unix(1, 0), Until: time.Unix(1, 0)}); err == nil {
		t.Error("nothing may be read from an instant to the same")
	}
}
