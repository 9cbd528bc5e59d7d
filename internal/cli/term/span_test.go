package term

import (
	"strings"
	"testing"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	testclock "k8s.io/utils/clock/testing"
)

// now is a Saturday.
var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestRangesAreParsed(t *testing.T) {
	// now is Saturday, 13:00 in Oslo.
	for _, tc := range []struct{ from, until, want string }{
		{"", "", "2026-11-21T13:00:00+01:00 2026-12-21T13:00:00+01:00"},
		{"2026-11-01T00:00:00Z", "", "2026-11-01T01:00:00+01:00 2026-12-01T01:00:00+01:00"},
		{"2026-11-01T00:00:00z", "2026-11-02T00:00:00+02:00", "2026-11-01T01:00:00+01:00 2026-11-01T23:00:00+01:00"},
		{"", "7d", "2026-11-21T13:00:00+01:00 2026-11-28T13:00:00+01:00"},
		{"2026-12-24", "7d", "2026-12-24T00:00:00+01:00 2026-12-31T00:00:00+01:00"},
		{"monday 08:00", "friday 17:00", "2026-11-23T08:00:00+01:00 2026-11-27T17:00:00+01:00"},
		{"", "tomorrow 08:00", "2026-11-21T13:00:00+01:00 2026-11-22T08:00:00+01:00"},
		{"2026-12-24", "tomorrow 08:00", "--until must be a time: with --from, "},
		{"now", "", "--from must be a time, and \"now\" cannot be read as a time"},
		{"", "never", "--until must be a time, and \"never\" cannot be read as a time"},
		{"2026-12-24", "2026-12-24", "--until must be later than --from"},
	} {
		s := &Terminal{IOStreams: genericiooptions.NewTestIOStreamsDiscard(), Clock: testclock.NewFakeClock(now), TimeZone: "Europe/Oslo"}
		r, err := parseRange(s, tc.from, tc.until)
		got := r.From.Format(time.RFC3339) + " " + r.Until.Format(time.RFC3339)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%q until %q: %s, want %s", tc.from, tc.until, got, tc.want)
		}
	}
}
