package api_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestATimeThatGoCannotDecodeIsRefused matters to every Gate in the cluster: the
// controller could list none if it could not decode one. The date-time format
// of OpenAPI is laxer than RFC 3339 as Go reads it.
func TestATimeThatGoCannotDecodeIsRefused(t *testing.T) {
	for _, value := range []string{
		"2026-12-19t00:00:00z", "2026-12-19T00:00:00z", "2026-12-19T00:00:00+99:99", "2026-12-19T00:00:00+25:00",
		"2026-12-19T00:00:00x5Z", "2026-12-19 00:00:00Z", "2026-12-19T00:00:00", "2026-12-19", "2026-12-19T24:00:00Z", "2026-12-19T00:00:60Z", "",
	} {
		for field, spec := range map[string]string{
			"notBefore": `{default: closed, notBefore: %q}`,
			"notAfter":  `{default: closed, notAfter: %q}`,
			"from":      `{default: closed, windows: [{name: a, from: %q, until: "2030-01-01T00:00:00Z"}]}`,
			"until":     `{default: closed, closePeriods: [{name: a, from: "2020-01-01T00:00:00Z", until: %q}]}`,
		} {
			spec := fmt.Sprintf(spec, value)
			err := admit(t, spec)
			decoded := len(validate(spec)) == 0
			if err == nil && !decoded {
				t.Errorf("%s: %q is accepted, but cannot be decoded", field, value)
			}
			if err != nil && !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %q is refused without naming the field: %v", field, value, err)
			}
		}
	}
}
