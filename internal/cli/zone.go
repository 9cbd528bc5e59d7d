package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
)

// zoneInfoVariable is the environment variable in place of --zoneinfo.
const zoneInfoVariable = "GATE_ZONEINFO"

// useZones replaces the time zone data if the flag or the variable names other data.
func (t *terminal) useZones() error {
	path, from := t.zoneInfo, "--zoneinfo"
	if path == "" {
		path, from = os.Getenv(zoneInfoVariable), zoneInfoVariable
	}
	if err := tz.Use(path); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	return nil
}

// zone returns the time zone that the user wants.
func (t *terminal) zone() (*time.Location, error) {
	if t.timeZone == "" {
		return time.Local, nil
	}
	zone, err := tz.Load(t.timeZone)
	if err != nil {
		return time.UTC, fmt.Errorf("--timezone: %w, name one of the IANA database, such as Europe/Oslo", err)
	}
	return zone, nil
}

// tableZone is the zone of times in RFC 3339 in tables: UTC unless somebody names one, so that docs and pull requests are the same
// everywhere.
func (t *terminal) tableZone() (*time.Location, error) {
	if t.timeZone == "" {
		return time.UTC, nil
	}
	return t.zone()
}
