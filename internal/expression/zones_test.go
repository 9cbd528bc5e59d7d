package expression

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
	"github.com/fluxcd/gating-controller/internal/tz/tztest"
)

// TestMain runs the tests with wrong time zones on the machine.
func TestMain(m *testing.M) { os.Exit(tztest.Run(m)) }

func TestTimestampFunctionsUseBuiltInZones(t *testing.T) {
	for _, zone := range []string{"America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC"} {
		location, err := tz.Load(zone)
		if err != nil {
			t.Fatal(err)
		}
		// The times are near the end of a year, so that all fields differ from those in UTC.
		for _, text := range []string{"2026-12-31T23:59:59.123Z", "2027-01-01T00:00:00Z", "2026-07-01T03:30:00Z", "2026-11-01T06:30:00Z"} {
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				t.Fatal(err)
			}
			at = at.In(location)
			for function, want := range map[string]int{
				"getFullYear": at.Year(), "getMonth": int(at.Month()) - 1, "getDayOfYear": at.YearDay() - 1, "getDayOfMonth": at.Day() - 1,
				"getDate": at.Day(), "getDayOfWeek": int(at.Weekday()), "getHours": at.Hour(), "getMinutes": at.Minute(),
				"getSeconds": at.Second(), "getMilliseconds": at.Nanosecond() / 1e6,
			} {
				for _, expression := range []string{
					fmt.Sprintf("timestamp('%s').%s('%s') == %d", text, function, zone, want),
					fmt.Sprintf("timestamp(req.at).%s(req.zone) == %d", function, want),
					fmt.Sprintf("[dyn(timestamp(req.at))].all(at, at.%s(req.zone) == %d)", function, want),
				} {
					if err := holds(expression, map[string]any{"at": text, "zone": zone}); err != nil {
						t.Errorf("%s: %v", expression, err)
					}
				}
			}
		}
	}
}

func holds(expression string, req map[string]any) error {
	e, err := NewBool(expression, "req")
	if err != nil {
		return err
	}
	got, err := e.Evaluate(context.Background(), map[string]any{"req": req})
	if err == nil && !got {
		return fmt.Errorf("it is false")
	}
	return err
}

func TestTimestampFunctionsRefuseUnknownZones(t *testing.T) {
	for _, zone := range []string{"", "Local", "localtime", "europe/oslo", "Mars/Olympus", "../UTC"} {
		err := holds("timestamp('2026-07-01T00:00:00Z').getHours(req.zone) >= 0", map[string]any{"zone": zone})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("unknown time zone %q", zone)) {
			t.Errorf("%q: %v", zone, err)
		}
	}
	for zone, hours := range map[string]int{"+02:00": 2, "-01:30": 22} {
		if err := holds(fmt.Sprintf("timestamp('2026-07-01T00:00:00Z').getHours('%s') == %d", zone, hours), nil); err != nil {
			t.Errorf("%q: %v", zone, err)
		}
	}
	if err := holds("timestamp('2026-07-01T05:00:00Z').getHours() == 5 && duration('90m').getMinutes() == 90", nil); err != nil {
		t.Errorf("without a zone: %v", err)
	}
}
