package ical_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// daily is an event that recurs on the first four days of June 2026.
const daily = "BEGIN:VEVENT\nUID:a\nSUMMARY:Daily\nDTSTART;TZID=Europe/Oslo:20260601T100000\nDURATION:PT1H\nRRULE:FREQ=DAILY;COUNT=4\nEND:VEVENT"

// changed returns a changed occurrence of daily. id is the rest of the RECURRENCE-ID, from its parameters or its colon on.
func changed(id string, lines ...string) string {
	return strings.Join(append([]string{"BEGIN:VEVENT", "UID:a", "SUMMARY:Changed", "RECURRENCE-ID" + id}, lines...), "\n") + "\nEND:VEVENT"
}

func TestChangedOccurrences(t *testing.T) {
	const first, third, fourth = "2026-06-01T08:00Z/2026-06-01T09:00Z Daily", "2026-06-03T08:00Z/2026-06-03T09:00Z Daily", "2026-06-04T08:00Z/2026-06-04T09:00Z Daily"
	const moved = "2026-06-05T08:00Z/2026-06-05T10:00Z Changed"
	at, length := "DTSTART:20260605T080000Z", "DURATION:PT2H"
	for _, tt := range []struct {
		name       string
		components []string
		want       []string
		notCounted []ical.NotCounted
	}{
		{"one is moved", []string{daily, changed(";TZID=Europe/Oslo:20260602T100000", at, length)}, []string{first, third, fourth, moved}, nil},
		{"one is longer, and starts as before", []string{daily, changed(":20260602T080000Z", "DTSTART:20260602T080000Z", length)}, []string{
			first, "2026-06-02T08:00Z/2026-06-02T10:00Z Changed", third, fourth,
		}, nil},
		{"the change comes first, and has its ID in UTC", []string{changed(":20260602T080000Z", at, length), daily}, []string{first, third, fourth, moved}, nil},
		{"the ID is a date", []string{daily, changed(";VALUE=DATE:20260602", at, length)}, []string{first, third, fourth, moved}, nil},
		{"one is cancelled, and needs no start", []string{daily, changed(":20260602T080000Z", "STATUS:CANCELLED")}, []string{first, third, fourth}, []ical.NotCounted{
			{Line: 11, Summary: "Changed", UID: "a", Cause: "STATUS is CANCELLED"},
		}},
		{"one is shown as free", []string{daily, changed(":20260602T080000Z", at, length, "TRANSP:TRANSPARENT")}, []string{first, third, fourth}, []ical.NotCounted{
			{Line: 11, Summary: "Changed", UID: "a", Cause: "TRANSP is TRANSPARENT: it is shown as free"},
		}},
		{"there is no such occurrence", []string{daily, changed(":20260602T080001Z", at, length)}, []string{
			first, "2026-06-02T08:00Z/2026-06-02T09:00Z Daily", third, fourth, moved,
		}, nil},
		{"there is no event of it", []string{changed(":20260602T080000Z", at, length)}, []string{moved}, nil},
		{"another event has that time", []string{strings.ReplaceAll(daily, "UID:a", "UID:b"), changed(":20260602T080000Z", at, length)}, []string{
			first, "2026-06-02T08:00Z/2026-06-02T09:00Z Daily", third, fourth, moved,
		}, nil},
		{"the whole event is cancelled", []string{strings.Replace(daily, "UID:a", "UID:a\nSTATUS:CANCELLED", 1)}, nil, []ical.NotCounted{
			{Line: 4, Summary: "Daily", UID: "a", Cause: "STATUS is CANCELLED"},
		}},
		{"one of an event of dates", []string{
			event("DTSTART;VALUE=DATE:20260601", "RRULE:FREQ=DAILY;COUNT=2"), strings.ReplaceAll(changed(";VALUE=DATE:20260601", "DTSTART;VALUE=DATE:20260610"), "UID:a", "UID:a@example.com"),
		}, []string{"2026-06-01T22:00Z/2026-06-02T22:00Z A", "2026-06-09T22:00Z/2026-06-10T22:00Z Changed"}, nil},
		{"a change that is older than another", []string{
			daily, changed(":20260602T080000Z", at, length, "SEQUENCE:10"), changed(";TZID=Europe/Oslo:20260602T100000", "DTSTART:nonsense", "SEQUENCE:9"),
		}, []string{first, third, fourth, moved}, []ical.NotCounted{{Line: 19, Summary: "Changed", UID: "a", Cause: "the event in line 11 is a later version of it"}}},
		{"a change that is cancelled later", []string{
			daily, changed(":20260602T080000Z", at, length, "DTSTAMP:20260101T000000Z"), changed(":20260602T080000Z", "STATUS:CANCELLED", "DTSTAMP:20260101T000001Z"),
		}, []string{first, third, fourth}, []ical.NotCounted{
			{Line: 11, Summary: "Changed", UID: "a", Cause: "the event in line 19 is a later version of it"},
			{Line: 19, Summary: "Changed", UID: "a", Cause: "STATUS is CANCELLED"},
		}},
		{"the sequence comes before the stamp", []string{
			changed(":20260602T080000Z", at, length, "SEQUENCE:1", "DTSTAMP:20250101T000000Z"), changed(":20260602T080000Z", "STATUS:CANCELLED", "DTSTAMP:20260101T000000Z"),
		}, []string{moved}, []ical.NotCounted{{Line: 13, Summary: "Changed", UID: "a", Cause: "the event in line 4 is a later version of it"}}},
		{"a change is there twice", []string{changed(":20260602T080000Z", at, length), changed(":20260602T080000Z", at, length)}, []string{moved}, []ical.NotCounted{
			{Line: 11, Summary: "Changed", UID: "a", Cause: "the event in line 4 is the same"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustRead(t, calendar(tt.components...), options())
			if got := show(c); !slices.Equal(got, tt.want) {
				t.Errorf("got\n%q, want\n%q", got, tt.want)
			}
			if !slices.Equal(c.NotCounted, tt.notCounted) {
				t.Errorf("not counted are\n%+v, want\n%+v", c.NotCounted, tt.notCounted)
			}
		})
	}
}
