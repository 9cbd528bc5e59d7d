package ical_test

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/ical"
	"github.com/fluxcd/gating-controller/internal/schedule"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// TestMain increases the number of rapid checks from the default of 100. All tests run with wrong system zones.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "2000"); err != nil {
		panic(err)
	}
	flag.Parse()
	os.Exit(tztest.Run(m))
}

func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return t
}

func mustZone(name string) *schedule.Zone {
	z, err := schedule.LoadZone(name)
	if err != nil {
		panic(err)
	}
	return z
}

// options returns options that read two years from 2026 on in Oslo.
func options(categories ...string) ical.Options {
	return ical.Options{
		Zone: mustZone("Europe/Oslo"), Categories: categories,
		From: utc("2026-01-01T00:00:00Z"), Until: utc("2028-01-01T00:00:00Z"),
	}
}

// calendar wraps components in a VCALENDAR, with the line ends of RFC 5545. The components begin in line 4.
func calendar(components ...string) string {
	all := append([]string{"BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Example//Test//EN"}, components...)
	return strings.ReplaceAll(strings.Join(append(all, "END:VCALENDAR", ""), "\n"), "\n", "\r\n")
}

// event returns a VEVENT with a UID, a summary and the given lines.
func event(lines ...string) string {
	all := append([]string{"BEGIN:VEVENT", "UID:a@example.com", "SUMMARY:A"}, lines...)
	return strings.Join(append(all, "END:VEVENT"), "\n")
}

// show returns the occurrences as "from/until summary", in UTC to the minute.
func show(c *ical.Calendar) []string {
	const minutes = "2006-01-02T15:04Z"
	var all []string
	for _, o := range c.Occurrences {
		all = append(all, o.Start.Format(minutes)+"/"+o.End.Format(minutes)+" "+o.Summary)
	}
	return all
}

func mustRead(t *testing.T, text string, o ical.Options) *ical.Calendar {
	t.Helper()
	c, err := ical.Read(text, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
