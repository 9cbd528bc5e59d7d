package ical_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/ical"
	"github.com/fluxcd/gating-controller/internal/schedule"
)

// large returns a text of 5,000 events, some of them recurring, in zones of IANA and of Windows.
func large() string {
	var all strings.Builder
	for i := range ical.MaxEvents {
		at := utc("2026-01-01T00:00:00Z").Add(time.Duration(i) * 200 * time.Minute)
		zone := []string{"Europe/Oslo", "W. Europe Standard Time", "America/New_York"}[i%3]
		fmt.Fprintf(&all, "BEGIN:VEVENT\nUID:%d@example.com\nDTSTAMP:20260101T000000Z\nSUMMARY:Change %d\nDTSTART;TZID=%s:%s\nDURATION:PT1H\n", i, i, zone, at.Format("20060102T150405"))
		if i%500 == 0 {
			all.WriteString("RRULE:FREQ=MONTHLY;BYDAY=-1FR\n")
		}
		all.WriteString("END:VEVENT\n")
	}
	return calendar(strings.TrimSuffix(all.String(), "\n"))
}

func BenchmarkRead(b *testing.B) {
	for name, text := range map[string]string{"5000 events": large(), "an export": file(b, "outlook.ics")} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ical.Read(text, options()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkPeriod(b *testing.B) {
	c, err := ical.Read(large(), options())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(c.Occurrences)), "occurrences")
	b.Run("made of 5000 events", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c.Period("calendar")
		}
	})
	b.Run("decides with 5000 events", func(b *testing.B) {
		plan := schedule.NewPlan(schedule.Config{Default: schedule.Opened, ClosePeriods: []schedule.Period{c.Period("calendar")}})
		now := utc("2026-11-04T12:34:56Z")
		b.ReportAllocs()
		for b.Loop() {
			plan.Decide(now)
		}
	})
}
