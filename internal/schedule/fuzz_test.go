package schedule_test

import (
	"fmt"
	"path"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/schedule"
)

// FuzzParseCron looks for an expression that panics, or that is accepted and
// then does what no cron does.
func FuzzParseCron(f *testing.F) {
	for _, tt := range refusedCrons {
		f.Add(tt.text)
	}
	for _, text := range []string{
		"* * * * *", "? ? ? ? ?", "0 0 * * FRI", "*/15 9-17 1,15 JAN-DEC mon-fri", "0 0 29 2 *", "0 0 13 * FRI",
		"59 23 31 12 6", "0-59/61 * * * *", "1,,2 * * * *", "*-5 * * * *", "\t0\n0 * * *\v", "0 0 31 1 ,",
		"0 0 1 */12 *", "+1 * * * *", "00 00 01 01 00", "０ ０ * * *", "0 0 * * sun#2", "*/99999999999 * * * *",
	} {
		f.Add(text)
	}
	now := utc("2026-03-28T12:00:30Z")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := schedule.ParseCron(text)
		if err != nil {
			return
		}
		for _, zone := range []string{"UTC", "Europe/Oslo", "Africa/Cairo"} {
			checkTicks(t, c, zone, now)
		}
	})
}

// checkTicks follows the first ticks of a cron after an instant.
func checkTicks(t *testing.T, c schedule.CronExpression, zone string, now time.Time) {
	p, err := schedule.Cron("", c, time.Minute, mustZone(zone))
	if err != nil {
		t.Fatal(err)
	}
	plan := newPlan(schedule.Config{OpenPeriods: []schedule.Period{p}})
	for range 3 {
		d := plan.Decide(now)
		switch {
		case d.Until.IsZero() && d.State == schedule.Closed:
			t.Fatalf("there is no tick after %s", now)
		case d.Next.At.IsZero() && d.State == schedule.Opened:
			return
		case !d.Next.At.After(now):
			t.Fatalf("%s is followed by %s", now, d.Next.At)
		case d.Next.At.Second() != 0:
			t.Fatalf("a tick within a minute: %s", d.Next.At)
		case plan.Decide(d.Next.At).State == d.State:
			t.Fatalf("%+v is not a change", d)
		}
		now = d.Next.At
	}
}

func FuzzParseTimeOfDay(f *testing.F) {
	for _, text := range []string{
		"00:00", "23:59", "24:00", "24:01", "25:00", "12:60", "9:10", "-1:10", "09.10", "", "١٢:٣٠", "1€1", "00:\x00\x00",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end, err := schedule.ParseEndOfDay(text)
		start, startErr := schedule.ParseTimeOfDay(text)
		if err != nil {
			if startErr == nil {
				t.Fatalf("%q is a start but no end", text)
			}
			return
		}
		if back := fmt.Sprintf("%02d:%02d", end/3600, end%3600/60); back != text {
			t.Fatalf("%q is read as %s", text, back)
		}
		if (startErr == nil) != (text != "24:00") || startErr == nil && start != end {
			t.Fatalf("%q starts at %d, %v, and ends at %d", text, start, startErr, end)
		}
	})
}

func FuzzLoadZone(f *testing.F) {
	for _, tt := range refusedZones {
		f.Add(tt.text)
	}
	for _, name := range []string{"", "UTC", "Europe/Oslo", "America/Argentina/ComodRivadavia", "Etc/GMT+12", "Factory", "EST5EDT"} {
		f.Add(name)
	}
	now := utc("2026-06-01T00:00:00Z")
	f.Fuzz(func(t *testing.T, name string) {
		zone, err := schedule.LoadZone(name)
		if err != nil {
			return
		}
		if again, err := schedule.LoadZone(zone.String()); again != zone || err != nil {
			t.Fatalf("%q is %s and then %v, %v", name, zone, again, err)
		}
		if name != "" && (zone.String() != name || path.Clean(name) != name) {
			t.Fatalf("%q is %s", name, zone)
		}
		// In every zone midnight comes within two days.
		midnight := schedule.Weekly("", schedule.Days{}, 0, 60, zone)
		d := newPlan(schedule.Config{OpenPeriods: []schedule.Period{midnight}}).Decide(now)
		if d.Next.At.IsZero() || d.Next.At.Sub(now) > 48*time.Hour {
			t.Fatalf("%q has midnight at %s", name, d.Next.At)
		}
	})
}
