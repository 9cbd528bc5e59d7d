package see

import (
	"strings"
	"testing"
)

// A row is printed again if its content changes, but not because time passes.
func TestFingerprintsIgnoreDurations(t *testing.T) {
	row := func(until string) []string {
		return []string{"apps", "production", "closed", "close request", until, "1/2", "admin"}
	}
	name, text := fingerprint(row("2026-11-26 10:18 (in 1h30m)"), true)
	if name != "apps/production" || !strings.HasPrefix(text, "closed|close request|2026-11-26 10:18|") {
		t.Errorf("%q says %q", name, text)
	}
	for until, same := range map[string]bool{
		"2026-11-26 10:18 (in 0s)": true, "2026-11-26 10:18 (0s ago)": true, "2026-11-26 10:18 (2m ago)": true,
		"2026-11-26 10:19 (in 1h30m)": false, "-": false,
	} {
		if _, other := fingerprint(row(until), true); (other == text) != same {
			t.Errorf("%s: %q", until, other)
		}
	}
}
