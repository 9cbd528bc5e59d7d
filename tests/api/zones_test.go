package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/tz"
)

func TestCRDAcceptsAllTimeZones(t *testing.T) {
	for names := range slices.Chunk(tz.Names(), 100) {
		var windows []string
		for i, name := range names {
			windows = append(windows, fmt.Sprintf(`{name: p%d, start: "08:00", end: "09:00", timeZone: %q}`, i, name))
		}
		spec := fmt.Sprintf("{default: closed, timeZone: %q, openPeriods: [%s]}", names[0], strings.Join(windows, ", "))
		if err := admit(t, spec); err != nil {
			t.Errorf("the API server refuses a zone: %v", err)
		}
		if errs := offline(t, v1alpha1.GateKind, spec); len(errs) > 0 {
			t.Errorf("the offline validator refuses zones: %v", errs)
		}
	}
}
