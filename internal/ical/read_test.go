package ical_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// TestEventSemantics reads events of two years from 2026 on in Oslo, which is one hour ahead of UTC, and two hours from 29 March to 25
// October 2026.
func TestEventSemantics(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		want []string
	}{
		{"a time in UTC", event("DTSTART:20260601T100000Z", "DTEND:20260601T110000Z"), []string{"2026-06-01T10:00Z/2026-06-01T11:00Z A"}},
		{"a floating time is in the zone of the reader", event("DTSTART:20260601T100000", "DTEND:20260601T110000"), []string{"2026-06-01T08:00Z/2026-06-01T09:00Z A"}},
		{"a time in a zone of IANA", event("DTSTART;TZID=Asia/Tokyo:20260601T100000", "DURATION:PT1H"), []string{"2026-06-01T01:00Z/2026-06-01T02:00Z A"}},
		{"a time in a zone of Windows", event("DTSTART;TZID=Tokyo Standard Time:20260601T100000", "DURATION:PT1H"), []string{"2026-06-01T01:00Z/2026-06-01T02:00Z A"}},
		{"start and end in two zones", event("DTSTART;TZID=Asia/Tokyo:20260601T100000", "DTEND;TZID=Europe/Oslo:20260601T100000"), []string{"2026-06-01T01:00Z/2026-06-01T08:00Z A"}},
		{"a date lasts a day", event("DTSTART;VALUE=DATE:20260601"), []string{"2026-05-31T22:00Z/2026-06-01T22:00Z A"}},
		{"a date without VALUE=DATE", event("DTSTART:20260601"), []string{"2026-05-31T22:00Z/2026-06-01T22:00Z A"}},
		{"dates up to the last, which is not in it", event("DTSTART;VALUE=DATE:20260601", "DTEND;VALUE=DATE:20260603"), []string{"2026-05-31T22:00Z/2026-06-02T22:00Z A"}},
		{"dates over a change of clocks", event("DTSTART;VALUE=DATE:20260328", "DURATION:P2D"), []string{"2026-03-27T23:00Z/2026-03-29T22:00Z A"}},
		{"a leap second is the one before", event("DTSTART:20260601T095960Z", "DTEND:20260601T110000Z"), []string{"2026-06-01T09:59Z/2026-06-01T11:00Z A"}},
		{
			"a time that does not exist is read with the offset before",
			event("DTSTART;TZID=Europe/Oslo:20260329T023000", "DURATION:PT1H"), []string{"2026-03-29T01:30Z/2026-03-29T02:30Z A"},
		},
		{
			"a time that occurs twice is the first",
			event("DTSTART;TZID=Europe/Oslo:20261025T023000", "DURATION:PT1H"), []string{"2026-10-25T00:30Z/2026-10-25T01:30Z A"},
		},
		{
			"DTEND gives all occurrences the same time of day",
			event("DTSTART;TZID=Europe/Oslo:20260327T220000", "DTEND;TZID=Europe/Oslo:20260328T060000", "RRULE:FREQ=DAILY;COUNT=3"),
			[]string{"2026-03-27T21:00Z/2026-03-28T05:00Z A", "2026-03-28T21:00Z/2026-03-29T04:00Z A", "2026-03-29T20:00Z/2026-03-30T04:00Z A"},
		},
		{
			"a night in which clocks go back has an hour more",
			event("DTSTART;TZID=Europe/Oslo:20261023T220000", "DTEND;TZID=Europe/Oslo:20261024T060000", "RRULE:FREQ=DAILY;COUNT=2"),
			[]string{"2026-10-23T20:00Z/2026-10-24T04:00Z A", "2026-10-24T20:00Z/2026-10-25T05:00Z A"},
		},
		{
			"a DTEND in another zone gives all occurrences the same elapsed time",
			event("DTSTART;TZID=Europe/Oslo:20261023T220000", "DTEND:20261024T040000Z", "RRULE:FREQ=DAILY;COUNT=2"),
			[]string{"2026-10-23T20:00Z/2026-10-24T04:00Z A", "2026-10-24T20:00Z/2026-10-25T04:00Z A"},
		},
		{
			"an occurrence that starts in an hour that does not exist is as long as the first",
			event("DTSTART;TZID=Europe/Oslo:20260328T023000", "DTEND;TZID=Europe/Oslo:20260328T030000", "RRULE:FREQ=DAILY;COUNT=2"),
			[]string{"2026-03-28T01:30Z/2026-03-28T02:00Z A", "2026-03-29T01:30Z/2026-03-29T02:00Z A"},
		},
		{
			"a DURATION of a day ends at the same time of day",
			event("DTSTART;TZID=Europe/Oslo:20260328T120000", "DURATION:P1D"), []string{"2026-03-28T11:00Z/2026-03-29T10:00Z A"},
		},
		{
			"a DURATION of 24 hours elapses",
			event("DTSTART;TZID=Europe/Oslo:20260328T120000", "DURATION:PT24H"), []string{"2026-03-28T11:00Z/2026-03-29T11:00Z A"},
		},
		{
			"a DURATION of days and hours has its days first",
			event("DTSTART;TZID=Europe/Oslo:20260327T120000", "DURATION:P1DT24H"), []string{"2026-03-27T11:00Z/2026-03-29T11:00Z A"},
		},
		{"a DURATION of weeks", event("DTSTART;VALUE=DATE:20260323", "DURATION:P1W"), []string{"2026-03-22T23:00Z/2026-03-29T22:00Z A"}},
		{
			"what runs at the start is there, what ends then is not",
			event("DTSTART:20251231T230000Z", "DURATION:PT2H") + "\n" + strings.ReplaceAll(event("DTSTART:20251231T230000Z", "DURATION:PT1H"), "UID:a", "UID:b"),
			[]string{"2025-12-31T23:00Z/2026-01-01T01:00Z A"},
		},
		{
			"an old rule whose occurrences are long", event("DTSTART;VALUE=DATE:19800101", "DURATION:P366D", "RRULE:FREQ=YEARLY;UNTIL=20250101"),
			[]string{"2024-12-31T23:00Z/2026-01-01T23:00Z A"},
		},
		{
			"an old rule whose occurrences overlap", event("DTSTART;VALUE=DATE:20250101", "DURATION:P10D", "RRULE:FREQ=DAILY;UNTIL=20251224"),
			[]string{"2025-12-22T23:00Z/2026-01-01T23:00Z A", "2025-12-23T23:00Z/2026-01-02T23:00Z A"},
		},
		{
			"the start counts also where the rule does not meet it", event("DTSTART:20260602T100000Z", "DURATION:PT1H", "RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=2"),
			[]string{"2026-06-02T10:00Z/2026-06-02T11:00Z A", "2026-06-08T10:00Z/2026-06-08T11:00Z A"},
		},
		{
			"UNTIL is the last", event("DTSTART;TZID=Europe/Oslo:20260601T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20260602T080000Z"),
			[]string{"2026-06-01T08:00Z/2026-06-01T09:00Z A", "2026-06-02T08:00Z/2026-06-02T09:00Z A"},
		},
		{
			"UNTIL is too early by a second", event("DTSTART;TZID=Europe/Oslo:20260601T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20260602T075959Z"),
			[]string{"2026-06-01T08:00Z/2026-06-01T09:00Z A"},
		},
		{
			"UNTIL is a date: that day is in", event("DTSTART;TZID=America/New_York:20260601T220000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20260602"),
			[]string{"2026-06-02T02:00Z/2026-06-02T03:00Z A", "2026-06-03T02:00Z/2026-06-03T03:00Z A"},
		},
		{
			"UNTIL without a zone is on the clock of the event",
			event("DTSTART;TZID=America/New_York:20260601T220000", "DURATION:PT1H", "RRULE:FREQ=DAILY;UNTIL=20260602T220000"),
			[]string{"2026-06-02T02:00Z/2026-06-02T03:00Z A", "2026-06-03T02:00Z/2026-06-03T03:00Z A"},
		},
		{
			"UNTIL of an event of dates is a time: its date in UTC counts", event("DTSTART;VALUE=DATE:20260601", "RRULE:FREQ=DAILY;UNTIL=20260602T000000Z"),
			[]string{"2026-05-31T22:00Z/2026-06-01T22:00Z A", "2026-06-01T22:00Z/2026-06-02T22:00Z A"},
		},
		{
			"EXDATE in another zone", event("DTSTART;TZID=Europe/Oslo:20260601T100000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2", "EXDATE:20260601T080000Z"),
			[]string{"2026-06-02T08:00Z/2026-06-02T09:00Z A"},
		},
		{
			"EXDATE is a date: on the clock of the event",
			event("DTSTART;TZID=America/New_York:20260601T220000", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE;VALUE=DATE:20260602"),
			[]string{"2026-06-02T02:00Z/2026-06-02T03:00Z A", "2026-06-04T02:00Z/2026-06-04T03:00Z A"},
		},
		{
			"EXDATE that is a date removes an RDATE of another zone",
			event("DTSTART;TZID=America/New_York:20260601T220000", "DURATION:PT1H", "RDATE:20260610T020000Z", "EXDATE;VALUE=DATE:20260609"),
			[]string{"2026-06-02T02:00Z/2026-06-02T03:00Z A"},
		},
		{
			"EXDATE that meets nothing, and several", event("DTSTART:20260601T100000Z", "DURATION:PT1H", "EXDATE:20260601T100001Z", "EXDATE:20190101T000000Z,20290101T000000Z"),
			[]string{"2026-06-01T10:00Z/2026-06-01T11:00Z A"},
		},
		{"all occurrences are left out", event("DTSTART:20260601T100000Z", "DURATION:PT1H", "EXDATE:20260601T100000Z"), nil},
		{
			"an EXDATE of an event of dates is a time: its date in its own zone counts",
			event("DTSTART;VALUE=DATE:20260601", "RRULE:FREQ=DAILY;COUNT=3", "EXDATE;TZID=Asia/Tokyo:20260601T000000", "EXDATE:20260602T233000Z"),
			[]string{"2026-06-02T22:00Z/2026-06-03T22:00Z A"},
		},
		{
			"a date that is in a rule and in RDATE too", event("DTSTART:20260601T100000Z", "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2", "RDATE:20260602T100000Z"),
			[]string{"2026-06-01T10:00Z/2026-06-01T11:00Z A", "2026-06-02T10:00Z/2026-06-02T11:00Z A"},
		},
		{
			"the last day of February in a rule by the year", event("DTSTART;VALUE=DATE:20240229", "RRULE:FREQ=YEARLY"), nil,
		},
		{"no UID", "BEGIN:VEVENT\nDTSTART:20260601T100000Z\nDURATION:PT1H\nEND:VEVENT", []string{"2026-06-01T10:00Z/2026-06-01T11:00Z "}},
		{
			"two without UID are two", strings.Repeat("BEGIN:VEVENT\nDTSTART:20260601T100000Z\nDURATION:PT1H\nEND:VEVENT\n", 2) + "X-Y:Z",
			[]string{"2026-06-01T10:00Z/2026-06-01T11:00Z ", "2026-06-01T10:00Z/2026-06-01T11:00Z "},
		},
		{
			"alarms have times of their own", event("DTSTART:20260601T100000Z", "DURATION:PT1H", "BEGIN:VALARM", "TRIGGER:-PT15M", "DURATION:PT5M", "REPEAT:4", "END:VALARM"),
			[]string{"2026-06-01T10:00Z/2026-06-01T11:00Z A"},
		},
		{
			"other components are not events",
			"BEGIN:VTODO\nUID:t\nDTSTART:20260601T100000Z\nDUE:20260602T100000Z\nEND:VTODO\nBEGIN:VJOURNAL\nDTSTART:20260601T100000Z\nEND:VJOURNAL\n" +
				"BEGIN:X-OTHER\nDTSTART:nonsense\nEND:X-OTHER", nil,
		},
		{"a day that the zone has left out", event("DTSTART;TZID=Pacific/Apia:20111230T100000", "DURATION:PT1H"), nil},
		{"BYSETPOS without a first", event("DTSTART:20260605T100000Z", "DURATION:PT1H", "RRULE:FREQ=MONTHLY;BYDAY=FR;BYSETPOS=5;COUNT=2"), []string{
			"2026-06-05T10:00Z/2026-06-05T11:00Z A", "2026-07-31T10:00Z/2026-07-31T11:00Z A",
		}},
		{"BYWEEKNO without a day takes that of the start", event("DTSTART:20260602T100000Z", "DURATION:PT1H", "RRULE:FREQ=YEARLY;BYWEEKNO=1"), []string{
			"2026-06-02T10:00Z/2026-06-02T11:00Z A", "2027-01-05T10:00Z/2027-01-05T11:00Z A",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := show(mustRead(t, calendar(tt.text), options()))
			if !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
		})
	}
}

func TestTextEscapes(t *testing.T) {
	want := []string{"2026-06-01T10:00Z/2026-06-01T11:00Z Frost, Sörens; plan\n\\x\u00e9"}
	plain := calendar("BEGIN:VEVENT", "UID:a", `SUMMARY;LANGUAGE=de:Frost\, Sörens\; plan\N\\x`+"\u00e9", "DTSTART:20260601T100000Z", "DURATION:PT1H", "END:VEVENT")
	for name, text := range map[string]string{
		"CRLF":                          plain,
		"LF":                            strings.ReplaceAll(plain, "\r", ""),
		"a mark of the order of bytes":  "\uFEFF" + plain,
		"blank lines":                   strings.ReplaceAll(plain, "\r\n", "\r\n\r\n") + "\r\n \r\n",
		"small letters":                 strings.NewReplacer("BEGIN:VEVENT", "begin:vevent", "DTSTART", "dtstart", "DURATION:PT1H", "duration:pt1h", "SUMMARY", "summary").Replace(plain),
		"a fold of each kind":           strings.NewReplacer("SUMMARY", "SUM\r\n MARY", "DTSTART:", "DTSTART\r\n\t:").Replace(plain),
		"a fold within a character":     strings.Replace(plain, "S\u00f6", "S\xc3\r\n \xb6", 1),
		"no last line end":              strings.TrimRight(plain, "\r\n"),
		"unknown properties":            strings.Replace(plain, "UID:a", "UID:a\r\nX-MICROSOFT-CDO-BUSYSTATUS:BUSY\r\nATTENDEE;CN=\"Doe: Jane; II\":mailto:x@example.com\r\nCOLOR:red\r\nATTENDEE;CN=A;CN=B;X:y", 1),
		"a parameter in quotes":         strings.Replace(plain, "DTSTART:20260601T100000Z", "DTSTART;X-A=\"b:;c\";TZID=\"Europe/Oslo\":20260601T120000", 1),
		"VALUE=DATE-TIME":               strings.Replace(plain, "DTSTART:", "DTSTART;VALUE=date-time:", 1),
		"a method":                      strings.Replace(plain, "VERSION:2.0", "VERSION:2.0\r\nMETHOD:CANCEL", 1),
		"two calendars, one with BOM":   calendar() + "\uFEFF" + plain,
		"the same calendar twice":       plain + plain,
		"UTC by its name and by Z":      strings.Replace(plain, "DTSTART:", "DTSTART;TZID=UTC:", 1),
		"STATUS and TRANSP that count":  strings.Replace(plain, "UID:a", "UID:a\r\nSTATUS:tentative\r\nTRANSP:opaque", 1),
		"an alarm in quotes as a value": strings.Replace(plain, "END:VEVENT", "BEGIN:VALARM\r\nDESCRIPTION:\"BEGIN:VEVENT\"\r\nEND:VALARM\r\nEND:VEVENT", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if got := show(mustRead(t, text, options())); !slices.Equal(got, want) {
				t.Errorf("got\n%q, want\n%q", got, want)
			}
		})
	}
}

func TestTimesWithoutZoneAreUTC(t *testing.T) {
	o := options()
	o.Zone = nil
	got := show(mustRead(t, calendar(event("DTSTART;VALUE=DATE:20260601")), o))
	if want := []string{"2026-06-01T00:00Z/2026-06-02T00:00Z A"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCategories(t *testing.T) {
	text := calendar(
		"BEGIN:VEVENT\nUID:1\nSUMMARY:Freeze\nCATEGORIES:Holiday,Change Freeze\nDTSTART;VALUE=DATE:20261224\nEND:VEVENT",
		"BEGIN:VEVENT\nUID:2\nSUMMARY:Two lines\nCATEGORIES:Other\nCATEGORIES;LANGUAGE=en: FREEZE\\, hard \nDTSTART;VALUE=DATE:20261225\nEND:VEVENT",
		"BEGIN:VEVENT\nUID:3\nSUMMARY:None\nDTSTART;VALUE=DATE:20261226\nEND:VEVENT",
		"BEGIN:VEVENT\nUID:4\nSUMMARY:A part of it\nCATEGORIES:Change Freezes\nDTSTART:nonsense\nEND:VEVENT",
	)
	c := mustRead(t, text, options("change freeze", "Freeze, hard"))
	if got, want := show(c), []string{"2026-12-23T23:00Z/2026-12-24T23:00Z Freeze", "2026-12-24T23:00Z/2026-12-25T23:00Z Two lines"}; !slices.Equal(got, want) {
		t.Errorf("got\n%q, want\n%q", got, want)
	}
	want := []ical.NotCounted{
		{Line: 17, Summary: "None", UID: "3", Cause: "it has none of the selected categories"},
		{Line: 22, Summary: "A part of it", UID: "4", Cause: "it has none of the selected categories"},
	}
	if !slices.Equal(c.NotCounted, want) {
		t.Errorf("not counted are\n%+v, want\n%+v", c.NotCounted, want)
	}
	if _, err := ical.Read(text, options()); err == nil {
		t.Error("an event that counts may have nonsense for its start")
	}
}
