package cli

import (
	"strings"
	"testing"
	"time"
)

// promotionWindow is one of Kargo: once, or each week on some days, from the first occurrence on.
type promotionWindow struct{ Kind, RRule, DTStart, DTEnd string }

// promotionWindows reads those of a ProjectConfig. A deny wins, and one allow is enough.
func promotionWindows(t *testing.T, manifest string) allows {
	t.Helper()
	var config struct {
		Spec struct{ PromotionWindows []promotionWindow }
	}
	zoneOf := decoded(t, manifest, &config)
	active := make([]allows, len(config.Spec.PromotionWindows))
	for i, w := range config.Spec.PromotionWindows {
		begin, end := civil(t, w.DTStart, zoneOf), civil(t, w.DTEnd, zoneOf)
		active[i] = occurrences(t, w.RRule, begin, end.Sub(begin))
	}
	return func(at time.Time) bool {
		allowed := false
		for i, w := range config.Spec.PromotionWindows {
			switch {
			case active[i](at) && w.Kind == "Deny":
				return false
			case active[i](at):
				allowed = true
			}
		}
		return allowed
	}
}

// civil reads a date and time, with a zone before it or in UTC.
func civil(t *testing.T, text string, zoneOf func(string) *time.Location) time.Time {
	t.Helper()
	zone := time.UTC
	if named, ok := strings.CutPrefix(text, "TZID="); ok {
		name, rest, _ := strings.Cut(named, ":")
		zone, text = zoneOf(name), rest
	}
	at, err := time.ParseInLocation("20060102T150405", text, zone)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// occurrences returns when a window is active. An occurrence of a rule has the same time of day, in the zone of the first one.
func occurrences(t *testing.T, rule string, begin time.Time, lasts time.Duration) allows {
	t.Helper()
	if rule == "" {
		return func(at time.Time) bool { return !at.Before(begin) && at.Before(begin.Add(lasts)) }
	}
	days, ok := strings.CutPrefix(rule, "FREQ=WEEKLY;BYDAY=")
	if !ok || lasts > 24*time.Hour {
		t.Fatalf("the test does not read %s for %s", rule, lasts)
	}
	counts := map[time.Weekday]bool{}
	for i, name := range []string{"SU", "MO", "TU", "WE", "TH", "FR", "SA"} {
		counts[time.Weekday(i)] = strings.Contains(","+days+",", ","+name+",")
	}
	var all ticks
	for day := 0; day < 400; day++ {
		if from := begin.AddDate(0, 0, day); counts[from.Weekday()] {
			all = append(all, from)
		}
	}
	return func(at time.Time) bool {
		from := all.last(at)
		return !from.IsZero() && at.Before(from.Add(lasts))
	}
}
