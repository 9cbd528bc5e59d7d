package term

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/internal/tz"
)

func TestTimesAreParsed(t *testing.T) {
	oslo, err := tz.Load("Europe/Oslo")
	if err != nil {
		t.Fatal(err)
	}
	saturday := now.In(oslo) // Saturday 2026-11-21 13:00
	for text, want := range map[string]string{
		"17:30":                     "2026-11-21 17:30 CET",
		"5pm":                       "2026-11-21 17:00 CET",
		"5:30PM":                    "2026-11-21 17:30 CET",
		"08:00":                     "2026-11-22 08:00 CET",
		"13:00":                     "2026-11-22 13:00 CET",
		"24:00":                     "2026-11-22 00:00 CET",
		"today 17:30":               "2026-11-21 17:30 CET",
		"tomorrow":                  "2026-11-22 00:00 CET",
		"Tomorrow  08:00":           "2026-11-22 08:00 CET",
		"monday 08:00":              "2026-11-23 08:00 CET",
		"mon":                       "2026-11-23 00:00 CET",
		"saturday 14:00":            "2026-11-21 14:00 CET",
		"saturday 12:00":            "2026-11-28 12:00 CET",
		"sat":                       "2026-11-28 00:00 CET",
		"2h":                        "2026-11-21 15:00 CET",
		"in 90m":                    "2026-11-21 14:30 CET",
		"3d":                        "2026-11-24 13:00 CET",
		"1w":                        "2026-11-28 13:00 CET",
		"2026-12-24":                "2026-12-24 00:00 CET",
		"2026-12-24 08:00":          "2026-12-24 08:00 CET",
		"2026-12-24T08:00":          "2026-12-24 08:00 CET",
		"2026-12-24T08:00:00Z":      "2026-12-24 09:00 CET",
		"2027-03-28 02:30":          "2027-03-28 03:30 CEST", // in a gap: with the offset before the gap
		"2027-10-31 02:30":          "2027-10-31 02:30 CEST", // repeated: the first occurrence
		"2026-12-24T08:00:00+05:30": "2026-12-24 03:30 CET",
		"13:00:01":                  "", "25:00": "", "noon": "", "": "", "mo": "", "yesterday": "", "2026-13-01": "", "-2h": "", "2 h": "", "today": "", "2020-01-01": "", "1w2d": "", "2d12h": "",
	} {
		at, err := ParseFutureTime(text, saturday)
		if got := at.Format("2006-01-02 15:04 MST"); (err == nil) != (want != "") || err == nil && got != want {
			t.Errorf("%q is %s, %v, want %q", text, got, err, want)
		}
	}
}

func TestPastTimesAreParsed(t *testing.T) {
	for text, want := range map[string]string{ // now is Saturday 2026-11-21 12:00
		"11:00": "2026-11-21 11:00", "12:00": "2026-11-21 12:00", "17:30": "2026-11-20 17:30", "10:30pm": "2026-11-20 22:30", "24:00": "2026-11-21 00:00",
		"Monday": "2026-11-16 00:00", "sat": "2026-11-21 00:00", "saturday 14:00": "2026-11-14 14:00", "yesterday 17:30": "2026-11-20 17:30",
		"tomorrow": "2026-11-22 00:00", "in 2h": "2026-11-21 14:00", "2026-12-24": "2026-12-24 00:00",
	} {
		if at, err := ReadPast(text, now); err != nil || at.Format("2006-01-02 15:04") != want {
			t.Errorf("%q is %s, %v, want %s", text, at, err, want)
		}
	}
}

func TestDurationsAreRounded(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 59 * time.Second: "59s", 59*time.Second + 700*time.Millisecond: "1m", 59*time.Minute + 59*time.Second: "1h", time.Hour + 29*time.Minute: "1h29m",
		2*time.Hour - 2*time.Second: "2h", 9*time.Hour + 59*time.Minute + 40*time.Second: "10h", 27*time.Hour + 20*time.Minute: "27h", 48*time.Hour - time.Second: "2d",
		30 * 24 * time.Hour: "30d", -time.Hour: "1h ago",
	} {
		got := FormatDuration(d)
		if d < 0 {
			got = FormatDistance(d)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}
