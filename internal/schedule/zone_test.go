package schedule_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// refusedZones has every kind of name that is not a time zone for us.
var refusedZones = []struct {
	name, text string
}{
	{"the machine's own zone", "Local"},
	{"the machine's own zone in lower case", "local"},
	{"the machine's own zone in upper case", "LOCAL"},
	{"the file of the machine's own zone", "localtime"},
	{"the machine's zone for rules without one", "posixrules"},
	{"a zone that counts leap seconds", "right/Europe/Oslo"},
	{"a zone that says that it does not", "posix/Europe/Oslo"},
	{"a zone that does not exist", "Europe/Trondheim"},
	{"a zone in lower case", "europe/oslo"},
	{"a continent", "Europe"},
	{"an offset", "+02:00"},
	{"an abbreviation of no zone", "CEST"},
	{"a zone after a space", " UTC"},
	{"a zone before a space", "UTC "},
	{"a space", " "},
	{"a path out of the database", "../../etc/localtime"},
	{"a path out of the database that comes back", "Europe/../Europe/Oslo"},
	{"an absolute path", "/etc/localtime"},
	{"a path with an empty step", "Europe//Oslo"},
	{"a path with a step that goes nowhere", "Europe/./Oslo"},
	{"a path that ends in a slash", "Europe/Oslo/"},
	{"a path of another system", `Europe\Oslo`},
	{"a rule as in the variable TZ", "CET-1CEST,M3.5.0,M10.5.0/3"},
	{"a byte of zero", "UTC\x00"},
}

func TestLoadZoneRefuses(t *testing.T) {
	for _, tt := range refusedZones {
		t.Run(tt.name, func(t *testing.T) {
			zone, err := schedule.LoadZone(tt.text)
			if err == nil {
				t.Fatalf("%q is accepted as %s", tt.text, zone)
			}
			if !strings.Contains(err.Error(), "time zone") {
				t.Errorf("%q is refused by %q", tt.text, err)
			}
			if _, err := schedule.LoadZone(tt.text); err == nil {
				t.Errorf("%q is accepted the second time", tt.text)
			}
		})
	}
}

func TestLoadZone(t *testing.T) {
	t.Run("no name is UTC", func(t *testing.T) {
		if zone := mustZone(""); zone.String() != "UTC" || zone != mustZone("UTC") {
			t.Errorf("%s", zone)
		}
	})
	t.Run("a zone is tabulated once", func(t *testing.T) {
		if first, second := mustZone("Europe/Oslo"), mustZone("Europe/Oslo"); first != second {
			t.Error("twice")
		}
	})
	t.Run("a zone may be asked for from everywhere at once", func(t *testing.T) {
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for _, name := range []string{"Asia/Tokyo", "Asia/Kolkata", "Asia/Amman"} {
					if zone := mustZone(name); zone.String() != name {
						t.Errorf("%s is %s", name, zone)
					}
				}
			})
		}
		group.Wait()
	})
	t.Run("every zone of the database can be had", func(t *testing.T) {
		for _, name := range tz.Names() {
			if zone, err := schedule.LoadZone(name); err != nil || zone.String() != name {
				t.Errorf("%s is %s, %v", name, zone, err)
			}
		}
	})
}

// A rule that goes on for ever needs a table up to its end, leap years included:
// https://go.dev/issue/81583 stops at the first of them that is naive.
func TestZoneKeepsItsRuleInTheFarFuture(t *testing.T) {
	for _, tt := range []coverage{
		{"noon in the summer of the north of 2199", weekly("Europe/Oslo", "12:00", "13:00"),
			"2199-07-01/2199-07-02", "2199-07-01T10:00/11:00"},
		{"noon in the winter of the north of 2199", weekly("Europe/Oslo", "12:00", "13:00"),
			"2199-12-01/2199-12-02", "2199-12-01T11:00/12:00"},
		{"noon in the summer of the south on the last day of a leap year", weekly("Pacific/Auckland", "12:00", "13:00"),
			"2040-12-31/2041-01-01", "2040-12-31T23:00/2041-01-01"},
		{"an hour that is skipped after a leap year", weekly("Europe/Oslo", "02:15", "02:45", time.Sunday),
			"2041-03-30T12:00/2041-04-01", "2041-03-31T01:15/01:45"},
		{"beyond the table the offset of its end goes on", weekly("Europe/Oslo", "12:00", "13:00"),
			"2300-07-01/2300-07-02", "2300-07-01T11:00/12:00"},
		{"before the table the offset of its beginning goes back", weekly("Europe/Oslo", "12:00", "13:00"),
			"1900-07-01/1900-07-02", "1900-07-01T11:00/12:00"},
	} {
		t.Run(tt.name, tt.run)
	}
}

func TestZonesWithOddOffsets(t *testing.T) {
	for _, tt := range []coverage{
		{"Nepal is three quarters of an hour off", weekly("Asia/Kathmandu", "00:00", "00:45", time.Monday),
			"2026-05-31/2026-06-02", "2026-05-31T18:15/19:00"},
		{"Kiribati is a day ahead of Hawaii", weekly("Pacific/Kiritimati", "00:00", "01:00", time.Monday),
			"2026-05-30/2026-06-02", "2026-05-31T10:00/11:00"},
		{"nowhere is later than Baker Island", weekly("Etc/GMT+12", "23:00", "24:00", time.Monday),
			"2026-06-01/2026-06-04", "2026-06-02T11:00/12:00"},
		{"Liberia counted seconds until 1972", weekly("Africa/Monrovia", "00:00", "01:00", time.Monday),
			"1971-06-06T12:00/1971-06-07T12:00", "1971-06-07T00:44:30/01:44:30"},
		{"Liberia skipped 2670 seconds in 1972", cron("Africa/Monrovia", "0 0 * * *", time.Minute),
			"1972-01-06/1972-01-08T12:00", "1972-01-06T00:44:30/00:45:30 1972-01-07T00:44:30/00:45:30 1972-01-08/00:01"},
		{"Dublin's winter is the exception from its summer", weekly("Europe/Dublin", "01:15", "01:45", time.Sunday),
			"2026-03-28T12:00/2026-03-30", "2026-03-29T01:15/01:45"},
	} {
		t.Run(tt.name, tt.run)
	}
}

// The engine evaluates a gap or a repeat with the previous span only.
func TestZonesHaveNoNestedClockChanges(t *testing.T) {
	changes := 0
	for _, name := range tz.Names() {
		at := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).In(location(t, name))
		for over := at; at.Year() < 2040; changes++ {
			_, before := at.Zone()
			if at = nextTransition(at); at.IsZero() {
				break
			}
			_, offset := at.Zone()
			if at.Before(over) {
				t.Errorf("%s changes its clocks at %s, before what it changed until %s is over", name, at.UTC(), over.UTC())
			}
			over = at.Add(max(time.Duration(offset-before), time.Duration(before-offset)) * time.Second)
		}
	}
	if changes < 10_000 {
		t.Errorf("%d changes, want those of the whole database", changes)
	}
}

func TestLoadZoneMatchesDatabase(t *testing.T) {
	t.Cleanup(func() { _ = tz.Use("") })
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC).Unix()
	offset := func() int64 {
		zone, err := schedule.LoadZone("Europe/Oslo")
		if err != nil {
			t.Fatal(err)
		}
		return zone.Wall(noon) - noon
	}
	before, file := offset(), filepath.Join(t.TempDir(), "zoneinfo.zip")
	if err := tztest.Moved(file); err != nil {
		t.Fatal(err)
	}
	if err := tz.Use(file); err != nil {
		t.Fatal(err)
	}
	if after := offset(); before != 2*60*60 || after != 9*60*60 {
		t.Errorf("the UTC offset was %ds, and in the other database it is %ds", before, after)
	}
}
