package suggest_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/internal/suggest"
)

func TestClosest(t *testing.T) {
	names := []string{"timeZone", "targets", "suspend", "ab"}
	for name, want := range map[string]string{
		"timezone": "timeZone", "target": "targets", "tragets": "targets", "suspended": "suspend", "SUSPEND": "suspend",
		"suspension": "", "x": "", "a": "", "": "",
	} {
		if got := suggest.Closest(name, names); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
