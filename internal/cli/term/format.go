package term

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TimeHeader returns the header of a column with times: its name and the time zone.
func TimeHeader(name string, now time.Time) string { return name + " (" + now.Format("MST") + ")" }

// FormatTime returns a time in its zone, with seconds unless they are zero.
func FormatTime(at time.Time) string {
	if at.Second() != 0 {
		return at.Format("2006-01-02 15:04:05 MST")
	}
	return at.Format("2006-01-02 15:04 MST")
}

// FormatUntil returns a time and its distance from now.
func FormatUntil(at, now time.Time) string {
	at = at.In(now.Location())
	return fmt.Sprintf("%s (%s)", at.Format("2006-01-02 15:04"), FormatDistance(at.Sub(now)))
}

// FormatDistance returns a distance such as in 3h or 2d ago.
func FormatDistance(d time.Duration) string {
	if d < 0 {
		return FormatDuration(-d) + " ago"
	}
	return "in " + FormatDuration(d)
}

// FormatDuration returns a duration with one or two units, rounded.
func FormatDuration(d time.Duration) string {
	switch {
	case d < time.Minute-time.Second/2:
		return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
	case d < 10*time.Hour:
		d = d.Round(time.Minute)
		hours, minutes := d/time.Hour, d%time.Hour/time.Minute
		switch {
		case hours == 0:
			return fmt.Sprintf("%dm", minutes)
		case minutes == 0:
			return fmt.Sprintf("%dh", hours)
		}
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case d < 48*time.Hour-30*time.Minute:
		return fmt.Sprintf("%dh", d.Round(time.Hour)/time.Hour)
	}
	return fmt.Sprintf("%dd", d.Round(time.Hour)/(24*time.Hour))
}

// FormatUntilOrDash is like FormatUntil, but returns a dash for nil.
func FormatUntilOrDash(at *metav1.Time, now time.Time) string {
	if at == nil {
		return "-"
	}
	return FormatUntil(at.Time, now)
}
