package ical_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fluxcd/gating-controller/internal/ical"
)

// changes has the changes of the clocks in New York and Oslo: the instants from which on a UTC offset applies, in hours.
var changes = map[string][]string{
	"America/New_York": {
		"2026-03-08T07:00:00Z -4", "2026-11-01T06:00:00Z -5", "2027-03-14T07:00:00Z -4", "2027-11-07T06:00:00Z -5", "2028-03-12T07:00:00Z -4", "2028-11-05T06:00:00Z -5",
	},
	"Europe/Oslo": {
		"2026-03-29T01:00:00Z 2", "2026-10-25T01:00:00Z 1", "2027-03-28T01:00:00Z 2", "2027-10-31T01:00:00Z 1", "2028-03-26T01:00:00Z 2", "2028-10-29T01:00:00Z 1",
	},
}

// vtimezones has definitions of both zones, as Outlook and other programs write them.
var vtimezones = map[string][]string{
	"America/New_York": {
		zone("16011104T020000\nRRULE:FREQ=YEARLY;BYDAY=1SU;BYMONTH=11", "16010311T020000\nRRULE:FREQ=YEARLY;BYDAY=2SU;BYMONTH=3", "-0500", "-0400"),
		zone("20071104T020000\nRRULE:FREQ=YEARLY;BYMONTH=11;BYMONTHDAY=1,2,3,4,5,6,7;BYDAY=SU", "20070311T020000\nRRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=SU;BYSETPOS=2", "-0500", "-0400"),
		zone("20261101T020000\nRDATE:20271107T020000,20281105T020000", "20260308T020000\nRDATE:20270314T020000\nRDATE:20280312T020000", "-0500", "-0400"),
	},
	"Europe/Oslo": {
		zone("16011028T030000\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=10", "16010325T020000\nRRULE:FREQ=YEARLY;BYDAY=-1SU;BYMONTH=3", "+0100", "+0200"),
		zone("19961027T030000\nRRULE:FREQ=YEARLY;UNTIL=20281029T010000Z;BYDAY=-1SU;BYMONTH=10", "19810329T020000\nRRULE:FREQ=YEARLY;COUNT=48;BYDAY=-1SU;BYMONTH=3", "+0100", "+0200"),
	},
}

// zone returns a VTIMEZONE whose name must be escaped.
func zone(standard, daylight, winter, summer string) string {
	return strings.Join([]string{
		"BEGIN:VTIMEZONE", `TZID:(UTC) Here\, there`, "X-LIC-LOCATION:Somewhere",
		"BEGIN:STANDARD", "TZOFFSETFROM:" + summer, "TZOFFSETTO:" + winter, "TZNAME:WINTER", "DTSTART:" + standard, "END:STANDARD",
		"BEGIN:DAYLIGHT", "TZOFFSETFROM:" + winter, "TZOFFSETTO:" + summer, "TZNAME:SUMMER", "DTSTART:" + daylight, "END:DAYLIGHT", "END:VTIMEZONE",
	}, "\n")
}

// TestDaylightSavingChanges checks each hour around each change, at wall-clock times that exist and at those that are skipped or repeated.
func TestDaylightSavingChanges(t *testing.T) {
	for name, all := range changes {
		for _, change := range all {
			var text string
			var hours int
			if _, err := fmt.Sscan(change, &text, &hours); err != nil {
				t.Fatal(err)
			}
			at := utc(text)
			before := map[string]int{"America/New_York": -9, "Europe/Oslo": 3}[name] - hours
			for h := -3; h <= 3; h++ {
				// The wall-clock time as if the clock had not been changed.
				wall := at.Add(time.Duration(before+h) * time.Hour)
				want := wall.Add(-time.Duration(before) * time.Hour)
				if later := wall.Add(-time.Duration(hours) * time.Hour); h >= 0 && !later.Before(at) {
					want = later
				}
				start := "DTSTART;TZID=\"%s\":" + wall.Format("20060102T150405")
				for i, vtimezone := range append([]string{""}, vtimezones[name]...) {
					tzid := name
					if i > 0 {
						tzid = "(UTC) Here, there"
					}
					o := options()
					o.Until = utc("2030-01-01T00:00:00Z")
					c := mustRead(t, calendar(strings.TrimPrefix(vtimezone+"\n"+event(fmt.Sprintf(start, tzid), "DURATION:PT1H"), "\n")), o)
					if got := c.Occurrences[0].Start; !got.Equal(want) {
						t.Errorf("%s %s, VTIMEZONE %d: %s, want %s", name, wall.Format("2006-01-02T15:04"), i, got, want)
					}
				}
			}
		}
	}
}

// TestVTimezonesMatchDatabase compares random wall-clock times of three years.
func TestVTimezonesMatchDatabase(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"America/New_York", "Europe/Oslo"}).Draw(t, "zone")
		defined := rapid.SampledFrom(vtimezones[name]).Draw(t, "VTIMEZONE")
		wall := utc("2026-04-01T00:00:00Z").Add(time.Duration(rapid.IntRange(0, 900*24*60).Draw(t, "minutes")) * time.Minute)
		of := func(tzid, uid string) string {
			return strings.ReplaceAll(event(fmt.Sprintf("DTSTART;TZID=\"%s\":%s", tzid, wall.Format("20060102T150405")), "DURATION:PT1H"), "UID:a", "UID:"+uid)
		}
		o := options()
		o.Until = utc("2030-01-01T00:00:00Z")
		c, err := ical.Read(calendar(defined, of("(UTC) Here, there", "a"), of(name, "b")), o)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.Occurrences; !got[0].Start.Equal(got[1].Start) {
			t.Fatalf("%s is %s and %s", wall, got[0].Start, got[1].Start)
		}
	})
}

func TestTZIDs(t *testing.T) {
	fixed := func(tzid, offset string) string {
		return "BEGIN:VTIMEZONE\nTZID:" + tzid + "\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:" + offset + "\nTZOFFSETTO:" + offset + "\nEND:STANDARD\nEND:VTIMEZONE"
	}
	of := func(tzid string) string { return event("DTSTART;TZID="+tzid+":20260601T120000", "DURATION:PT1H") }
	for name, tt := range map[string]struct {
		text, want string
	}{
		"the database comes before a VTIMEZONE":   {fixed("Europe/Oslo", "+0900") + "\n" + of("Europe/Oslo"), "2026-06-01T10:00:00Z"},
		"Windows comes before a VTIMEZONE":        {fixed("W. Europe Standard Time", "+0900") + "\n" + of("W. Europe Standard Time"), "2026-06-01T10:00:00Z"},
		"a VTIMEZONE":                             {fixed("Mine", "+0900") + "\n" + of("Mine"), "2026-06-01T03:00:00Z"},
		"a VTIMEZONE after its use":               {of("Mine") + "\n" + fixed("Mine", "-093015"), "2026-06-01T21:30:15Z"},
		"a VTIMEZONE twice":                       {fixed("Mine", "+0900") + "\n" + of("Mine") + "\n" + fixed("Mine", "+0900"), "2026-06-01T03:00:00Z"},
		"a VTIMEZONE that nobody uses":            {fixed("Other", "nonsense") + "\n" + of("Europe/Oslo"), "2026-06-01T10:00:00Z"},
		"Local is not a zone of the machine":      {fixed("Local", "+0900") + "\n" + of("Local"), "2026-06-01T03:00:00Z"},
		"the VTIMEZONE of another VCALENDAR":      {fixed("Mine", "+0900") + "\n" + of("Mine") + "\nEND:VCALENDAR\nBEGIN:VCALENDAR\n" + fixed("Mine", "+0100"), "2026-06-01T03:00:00Z"},
		"before its first onset, the offset from": {strings.Replace(fixed("Mine", "+0900"), "19700101", "20270101", 1) + "\n" + of("Mine"), "2026-06-01T03:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			c := mustRead(t, calendar(tt.text), options())
			if got := c.Occurrences[0].Start.Format(time.RFC3339); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestWindowsZones compares each zone of Windows with the zone of IANA.
func TestWindowsZones(t *testing.T) {
	for tzid, name := range ical.Windows {
		text := strings.Join([]string{
			event("DTSTART;TZID="+tzid+":20260115T120000", "DURATION:PT1H", "RDATE;TZID="+tzid+":20260715T120000"),
			strings.ReplaceAll(event("DTSTART;TZID="+name+":20260115T120000", "DURATION:PT1H", "RDATE;TZID="+name+":20260715T120000"), "UID:a", "UID:b"),
		}, "\n")
		got := mustRead(t, calendar(text), options()).Occurrences
		if len(got) != 4 || !got[0].Start.Equal(got[1].Start) || !got[2].Start.Equal(got[3].Start) {
			t.Errorf("%s is not %s: %+v", tzid, name, got)
		}
	}
	for tzid, name := range map[string]string{
		"W. Europe Standard Time": "Europe/Berlin", "Romance Standard Time": "Europe/Paris", "GMT Standard Time": "Europe/London", "Eastern Standard Time": "America/New_York",
		"Pacific Standard Time": "America/Los_Angeles", "Tokyo Standard Time": "Asia/Tokyo", "AUS Eastern Standard Time": "Australia/Sydney", "UTC": "Etc/UTC",
	} {
		if ical.Windows[tzid] != name {
			t.Errorf("%s is %s, want %s", tzid, ical.Windows[tzid], name)
		}
	}
	if n := len(ical.Windows); n < 130 || !slices.Contains([]string{"Asia/Calcutta", "Asia/Kolkata"}, ical.Windows["India Standard Time"]) {
		t.Errorf("%d zones", n)
	}
}
