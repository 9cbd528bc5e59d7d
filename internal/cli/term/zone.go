package term

import (
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// ZoneInfoVariable is the environment variable that corresponds to --zoneinfo.
const ZoneInfoVariable = "GATE_ZONEINFO"

// UseZoneInfo replaces the time zone data if the flag or the variable is set.
func (t *Terminal) UseZoneInfo() error {
	path, from := t.ZoneInfo, "--zoneinfo"
	if path == "" {
		path, from = os.Getenv(ZoneInfoVariable), ZoneInfoVariable
	}
	if err := tz.Use(path); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// zone returns the time zone of the user.
func (t *Terminal) zone() (*time.Location, error) {
	if t.TimeZone == "" {
		return time.Local, nil
	}
	zone, err := tz.Load(t.TimeZone)
	if err != nil {
		return time.UTC, fmt.Errorf("--timezone: %w, name one of the IANA database, such as Europe/Oslo", err)
	}
	return zone, nil
}

// TableZone returns the time zone of RFC 3339 times in tables. It is the zone of --timezone or UTC, so that docs and pull requests do not
// depend on the machine.
func (t *Terminal) TableZone() (*time.Location, error) {
	if t.TimeZone == "" {
		return time.UTC, nil
	}
	return t.zone()
}
