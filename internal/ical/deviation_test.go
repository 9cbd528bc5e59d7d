package ical_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// warned returns the warnings of a calendar.
func warned(c *ical.Calendar) (all []string) {
	for _, w := range c.Warnings {
		all = append(all, w.Error())
	}
	return all
}

// TestDeviationsCauseWarnings reads what some programs write although RFC 5545 does not allow it, or although it has no effect.
func TestDeviationsCauseWarnings(t *testing.T) {
	const first, second = "2026-06-01T08:00Z/2026-06-01T09:00Z A", "2026-06-02T08:00Z/2026-06-02T09:00Z A"
	start, hour := "DTSTART:20260601T100000", "DURATION:PT1H"
	series := []string{start, hour, "RRULE:FREQ=DAILY;COUNT=2"}
	blanks := "line 9: RRULE has blanks or a semicolon at its end, which are ignored"
	for name, tt := range map[string]struct {
		text string
		want []string
		warn []string
	}{
		"a semicolon at the end of a rule": {event(start, hour, "RRULE:FREQ=DAILY;COUNT=2;"), []string{first, second}, []string{blanks}},
		"blanks in a rule":                 {event(start, hour, "RRULE:FREQ=DAILY; COUNT=2;BYDAY=MO, TU ,WE"), []string{first, second}, []string{blanks}},
		"blanks in a list of dates":        {event(append(series, "EXDATE:20260601T100000, 20260602T100000")...), nil, nil},
		"a zone with a slash": {
			event("DTSTART;TZID=/Europe/Oslo:20260601T100000", hour), []string{first}, []string{`line 7: DTSTART has the TZID "/Europe/Oslo", which is read as "Europe/Oslo"`},
		},
		"a zone with a prefix": {
			event("DTSTART;TZID=/example.com/20260101_1/Europe/Oslo:20260601T100000", hour), []string{first},
			[]string{`line 7: DTSTART has the TZID "/example.com/20260101_1/Europe/Oslo", which is read as "Europe/Oslo"`},
		},
		"an event of dates that ends on the day on which it starts": {
			event("DTSTART;VALUE=DATE:20260601", "DTEND;VALUE=DATE:20260601"), []string{"2026-05-31T22:00Z/2026-06-01T22:00Z A"},
			[]string{"line 8: DTEND is the day of DTSTART: the event lasts that day"},
		},
		"a date that no occurrence has": {
			event(append(series, "EXDATE:20260603T100000", "EXDATE;VALUE=DATE:20260602")...), []string{first}, []string{`line 10: EXDATE "20260603T100000" is not an occurrence of the event`},
		},
		"a date before the time that is read": {event(append(series, "EXDATE:19990603T100000")...), []string{first, second}, nil},
		"a change of no occurrence": {
			daily + "\n" + changed(":20260609T080000Z", "STATUS:CANCELLED"),
			[]string{"2026-06-01T08:00Z/2026-06-01T09:00Z Daily", "2026-06-02T08:00Z/2026-06-02T09:00Z Daily", "2026-06-03T08:00Z/2026-06-03T09:00Z Daily", "2026-06-04T08:00Z/2026-06-04T09:00Z Daily"},
			[]string{"line 11: VEVENT has a RECURRENCE-ID that matches no occurrence of the event with the same UID"},
		},
		"a change that repeats the rule": {
			strings.Replace(daily, "COUNT=4", "COUNT=2", 1) + "\n" + changed(":20260602T080000Z", "DTSTART:20260605T080000Z", hour, "RRULE:FREQ=DAILY", "RDATE:20260701T080000Z", "EXDATE:20260605T080000Z"),
			[]string{"2026-06-01T08:00Z/2026-06-01T09:00Z Daily", "2026-06-05T08:00Z/2026-06-05T09:00Z Changed"},
			[]string{
				"line 17: RRULE is ignored, because an event with a RECURRENCE-ID is a single occurrence", "line 18: RDATE is ignored, because an event with a RECURRENCE-ID is a single occurrence",
				"line 19: EXDATE is ignored, because an event with a RECURRENCE-ID is a single occurrence",
			},
		},
		"busy times": {
			"BEGIN:VFREEBUSY\nUID:f\nFREEBUSY;FBTYPE=FREE:20260601T000000Z/PT1H\nFREEBUSY:20260601T080000Z/PT1H,20260602T080000Z/20260602T090000Z\n" +
				"FREEBUSY;FBTYPE=BUSY-TENTATIVE:20260603T080000Z/PT1H\nEND:VFREEBUSY",
			[]string{"2026-06-01T08:00Z/2026-06-01T09:00Z busy", "2026-06-02T08:00Z/2026-06-02T09:00Z busy", "2026-06-03T08:00Z/2026-06-03T09:00Z busy"}, nil,
		},
		"no events": {"BEGIN:VTODO\nEND:VTODO", nil, []string{"line 1: VCALENDAR has no events"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustRead(t, calendar(tt.text), options())
			if got := show(c); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
			if got := warned(c); !slices.Equal(got, tt.warn) {
				t.Errorf("warnings are\n%q, want\n%q", got, tt.warn)
			}
		})
	}
}

// TestValuesWithoutZoneUseZoneOfStart reads values of an event in New York. The zone of the reader is Oslo.
func TestValuesWithoutZoneUseZoneOfStart(t *testing.T) {
	start := "DTSTART;TZID=America/New_York:20260601T100000"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"DTEND":                      {event(start, "DTEND:20260601T110000"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z A"}},
		"DTEND of UTC":               {event("DTSTART:20260601T140000Z", "DTEND:20260601T150000"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z A"}},
		"EXDATE":                     {event(start, "DURATION:PT1H", "RRULE:FREQ=DAILY;COUNT=2", "EXDATE:20260601T100000"), []string{"2026-06-02T14:00Z/2026-06-02T15:00Z A"}},
		"RDATE":                      {event(start, "DURATION:PT1H", "RDATE:20260602T100000"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z A", "2026-06-02T14:00Z/2026-06-02T15:00Z A"}},
		"RDATE with an end":          {event(start, "DURATION:PT1H", "RDATE;VALUE=PERIOD:20260602T100000/20260602T103000"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z A", "2026-06-02T14:00Z/2026-06-02T14:30Z A"}},
		"RECURRENCE-ID":              {newYork + changed(":20260602T100000", start[:len(start)-15]+"20260605T100000", "DURATION:PT1H"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z Daily", "2026-06-05T14:00Z/2026-06-05T15:00Z Changed"}},
		"RECURRENCE-ID in UTC":       {newYork + changed(":20260602T100000", "DTSTART:20260605T140000Z", "DURATION:PT1H"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z Daily", "2026-06-05T14:00Z/2026-06-05T15:00Z Changed"}},
		"RECURRENCE-ID that cancels": {newYork + changed(":20260602T100000", "STATUS:CANCELLED"), []string{"2026-06-01T14:00Z/2026-06-01T15:00Z Daily"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustRead(t, calendar(tt.text), options())
			if got := show(c); !slices.Equal(got, tt.want) || len(c.Warnings) > 0 {
				t.Errorf("got\n%q, want\n%q; warnings are %q", got, tt.want, warned(c))
			}
		})
	}
}

const newYork = "BEGIN:VEVENT\nUID:a\nSUMMARY:Daily\nDTSTART;TZID=America/New_York:20260601T100000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=2\nEND:VEVENT\n"

// TestDateSeriesMayHaveTimedOverride checks that a RECURRENCE-ID with a time means its date.
func TestDateSeriesMayHaveTimedOverride(t *testing.T) {
	text := strings.NewReplacer("DTSTART;TZID=America/New_York:20260601T100000", "DTSTART;VALUE=DATE:20260601", "DURATION:PT1H\n", "").Replace(newYork)
	for _, id := range []string{":20260602T000000Z", ";TZID=America/New_York:20260602T230000", ":20260602T000000", ";VALUE=DATE:20260602"} {
		c := mustRead(t, calendar(text, changed(id, "STATUS:CANCELLED")), options())
		if got := show(c); !slices.Equal(got, []string{"2026-05-31T22:00Z/2026-06-01T22:00Z Daily"}) || len(c.Warnings) > 0 {
			t.Errorf("%s: got %q, warnings are %q", id, got, warned(c))
		}
	}
}

// sameUID returns an event on a day of June 2026. All of them have the same UID.
func sameUID(day int, lines ...string) string {
	return event(append([]string{fmt.Sprintf("DTSTART;VALUE=DATE:202606%02d", day)}, lines...)...)
}

func TestSameUIDOnDifferentDays(t *testing.T) {
	const first, second, third = "2026-05-31T22:00Z/2026-06-01T22:00Z A", "2026-06-01T22:00Z/2026-06-02T22:00Z A", "2026-06-02T22:00Z/2026-06-03T22:00Z A"
	stamp := func(n int) string { return fmt.Sprintf("DTSTAMP:2026010%dT000000Z", n) }
	for name, tt := range map[string]struct {
		text          []string
		closes, opens []string
		warnings      int
		err           string
	}{
		"the same SEQUENCE": {[]string{sameUID(1, stamp(1)), sameUID(2, stamp(3)), sameUID(3, stamp(2))}, []string{first, second, third}, []string{second}, 2, ""},
		"a later SEQUENCE supersedes all of them": {
			[]string{sameUID(1, stamp(1)), sameUID(2, stamp(3)), sameUID(3, stamp(2), "SEQUENCE:1")}, []string{third}, []string{third}, 0, "",
		},
		"the same SEQUENCE and DTSTAMP": {[]string{sameUID(1), sameUID(2)}, []string{first, second}, nil, 1, "DTSTAMPs do not show which one is later"},
		"a later version of one of them": {
			[]string{sameUID(1, stamp(1)), sameUID(2, stamp(3)), sameUID(1, stamp(2), "STATUS:CANCELLED")}, []string{second}, []string{second}, 0, "",
		},
		"the latest is cancelled": {[]string{sameUID(1, stamp(1)), sameUID(2, stamp(3), "STATUS:CANCELLED")}, []string{first}, nil, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := options()
			c := mustRead(t, calendar(tt.text...), o)
			if got := show(c); !slices.Equal(got, tt.closes) || len(c.Warnings) != tt.warnings {
				t.Errorf("a period that closes has %q, want %q; warnings are %q", got, tt.closes, warned(c))
			}
			o.Opens = true
			c, err := ical.Read(calendar(tt.text...), o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := show(c); !slices.Equal(got, tt.opens) || len(c.Warnings) != tt.warnings {
				t.Errorf("a period that opens has %q, want %q; warnings are %q", got, tt.opens, warned(c))
			}
		})
	}
}

// TestZonesStartingIn1601 reads zones as Exchange writes them.
func TestZonesStartingIn1601(t *testing.T) {
	zone := func(standard, daylight string) string {
		return "BEGIN:VTIMEZONE\nTZID:Mine\nBEGIN:STANDARD\nDTSTART:16010101T" + standard + "\nEND:STANDARD\nBEGIN:DAYLIGHT\nDTSTART:16010101T" + daylight + "\nEND:DAYLIGHT\nEND:VTIMEZONE\n" +
			event("DTSTART;TZID=Mine:20260601T100000", "DURATION:PT1H") + "\n" + event("UID:b", "DTSTART;TZID=Mine:20261201T100000", "DURATION:PT1H")
	}
	for text, want := range map[string][]string{
		zone("030000\nTZOFFSETFROM:+0200\nTZOFFSETTO:+0100\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10", "020000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3"): {
			"2026-06-01T08:00Z/2026-06-01T09:00Z A", "2026-12-01T09:00Z/2026-12-01T10:00Z A"},
		zone("000000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0100", "000000\nTZOFFSETFROM:+0100\nTZOFFSETTO:+0200"): {
			"2026-06-01T09:00Z/2026-06-01T10:00Z A", "2026-12-01T09:00Z/2026-12-01T10:00Z A"},
	} {
		text = strings.Replace(text, "UID:a@example.com\nSUMMARY:A\nUID:b", "UID:b\nSUMMARY:A", 1)
		if got := show(mustRead(t, calendar(text), options())); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q of\n%s", got, want, text)
		}
	}
}

// TestAllErrorsAreReported reads a text with a malformed line, an event that cannot be identified, and an event with an invalid
// rule.
func TestAllErrorsAreReported(t *testing.T) {
	text := calendar("no property", event("SEQUENCE:x", "STATUS:y", "DTSTART:20260601"), event("DTSTART:20260601T100000", "DURATION:PT1H", "RRULE:FREQ=HOURLY"),
		strings.Replace(event("STATUS:CANCELLED", "RRULE:x"), "UID:a", "UID:b", 1))
	_, err := ical.Read(text, options())
	var all ical.Errors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	var lines []int
	for _, e := range all {
		lines = append(lines, e.Line)
	}
	if want := []int{4, 8, 9, 17}; !slices.Equal(lines, want) {
		t.Errorf("lines %v, want %v: %v", lines, want, err)
	}
	if _, err := ical.Read(calendar(strings.Repeat("no property\n", 1000)), options()); !errors.As(err, &all) || len(all) != 20 {
		t.Errorf("%d errors", len(all))
	}
}
