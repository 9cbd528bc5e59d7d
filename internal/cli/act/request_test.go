package act

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

func TestRequestEndsAfterItBegins(t *testing.T) {
	f := requestFlags{at: "tomorrow 08:00", until: "17:30"}
	r, err := f.request(v1alpha1.RequestOpen, now)
	if err != nil || r.String() != "requesting to open at 2026-11-22 08:00 UTC until 2026-11-22 17:30 UTC" {
		t.Errorf("%v, %v", r, err)
	}
}
