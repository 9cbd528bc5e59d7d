package gate_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// local returns a dated period in the time zone zone.
func local(zone v1alpha1.TimeZone, from, until string) v1alpha1.Period {
	p := dated("a", from, until)
	p.TimeZone = zone
	return p
}

func TestDatedPeriodUsesItsTimeZone(t *testing.T) {
	for name, tc := range map[string]struct {
		period      v1alpha1.Period
		from, until string
	}{
		"one date":                           {local("Europe/Oslo", "2026-12-24", "2026-12-24"), "2026-12-23T23:00:00Z", "2026-12-24T23:00:00Z"},
		"dates include the last day":         {local("Asia/Tokyo", "2026-12-24", "2026-12-26"), "2026-12-23T15:00:00Z", "2026-12-26T15:00:00Z"},
		"dates in the time zone of the gate": {local("", "2026-12-31", "2027-01-01"), "2026-12-31T05:00:00Z", "2027-01-02T05:00:00Z"},
		"a day of 25 hours":                  {local("Europe/Oslo", "2026-10-25", "2026-10-25"), "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		"a day without midnight":             {local("Africa/Cairo", "2026-04-24", "2026-04-24"), "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		"local times":                        {local("Europe/Oslo", "2026-12-24T08:00", "2026-12-24T08:01"), "2026-12-24T07:00:00Z", "2026-12-24T07:01:00Z"},
		"a local time that occurs twice":     {local("Europe/Oslo", "2026-10-25T02:30", "2026-10-25T03:00"), "2026-10-25T00:30:00Z", "2026-10-25T02:00:00Z"},
		"a local time in a gap":              {local("Europe/Oslo", "2026-03-29T01:00", "2026-03-29T02:30"), "2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z"},
		"RFC 3339 needs no time zone":        {local("Europe/Oslo", "2026-12-24T08:00:00Z", "2026-12-24T10:00:00+01:00"), "2026-12-24T08:00:00Z", "2026-12-24T09:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed(windows(tc.period), func(s *v1alpha1.GateSpec) { s.TimeZone = "America/New_York" })
			if errs := gate.Validate(g); len(errs) > 0 {
				t.Fatal(errs)
			}
			intervals, err := gate.Intervals(g, utc("2026-01-01T00:00:00Z"), utc("2027-02-01T00:00:00Z"))
			if err != nil {
				t.Fatal(err)
			}
			for i := range intervals {
				if i.State.String() == "opened" && (stamp(i.From) != tc.from || stamp(i.Until) != tc.until) {
					t.Errorf("opened from %s until %s, want %s until %s", stamp(i.From), stamp(i.Until), tc.from, tc.until)
				}
			}
			if d := gate.Decide(g, utc(tc.from)); d.State != v1alpha1.StateOpened {
				t.Errorf("%s at %s", d.State, tc.from)
			}
		})
	}
}

// The zones may change after a Gate was written, so a gap must not make a spec invalid that has other close periods.
func TestDatedPeriodInvertedByGapIsEmpty(t *testing.T) {
	freeze := local("Europe/Oslo", "2026-12-24", "2026-12-26")
	freeze.Name = "freeze"
	for name, gap := range map[string]v1alpha1.Period{
		"local times": local("Europe/Oslo", "2026-03-29T02:30", "2026-03-29T03:10"), "a day that Samoa left out": local("Pacific/Apia", "2011-12-30", "2011-12-30"),
	} {
		g := opened(closePeriods(closing(gap, ""), closing(freeze, "")))
		if errs := gate.Validate(g); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
		for at, want := range map[string]v1alpha1.State{
			"2011-12-30T10:00:00Z": v1alpha1.StateOpened, "2026-03-29T01:15:00Z": v1alpha1.StateOpened, "2026-12-24T12:00:00Z": v1alpha1.StateClosed,
		} {
			if d := gate.Decide(g, utc(at)); d.State != want {
				t.Errorf("%s: %s at %s", name, d.State, at)
			}
		}
	}
}

func TestValidateReportsInvalidDates(t *testing.T) {
	const form, order, same = "must be a date such as 2026-12-24", "must be later than from, or the same date", "must have the same form"
	for name, tc := range map[string]struct {
		from, until string
		path, cause string
	}{
		"a word":                        {"tomorrow", "2026-12-24", ".from", form},
		"30 February":                   {"2026-02-01", "2026-02-30", ".until", form},
		"a date of one digit":           {"2026-12-1", "2026-12-24", ".from", form},
		"the year 0":                    {"0000-12-01", "2026-12-24", ".from", form},
		"a blank instead of the T":      {"2026-12-24 08:00", "2026-12-24T09:00", ".from", form},
		"24:00":                         {"2026-12-24T08:00", "2026-12-24T24:00", ".until", form},
		"an hour of one digit":          {"2026-12-24T8:00:00Z", "2026-12-24T09:00:00Z", ".from", form},
		"seconds without a zone":        {"2026-12-24T08:00:00", "2026-12-24T09:00", ".from", form},
		"a zone without seconds":        {"2026-12-24T08:00Z", "2026-12-24T09:00", ".from", form},
		"a date before another":         {"2026-12-24", "2026-12-23", ".until", order},
		"a local time equal to another": {"2026-12-24T08:00", "2026-12-24T08:00", ".until", order},
		"a date and a local time":       {"2026-12-24", "2026-12-24T08:00", "", same},
		"a local time and RFC 3339":     {"2026-12-24T08:00", "2026-12-24T09:00:00Z", "", same},
	} {
		t.Run(name, func(t *testing.T) {
			errs := gate.Validate(closed(windows(local("Europe/Oslo", tc.from, tc.until))))
			if len(errs) != 1 || errs[0].Field != "spec.openPeriods[0]"+tc.path || !strings.Contains(errs[0].Error(), tc.cause) {
				t.Errorf("got %v, want %q at %q", errs, tc.cause, tc.path)
			}
		})
	}
}
