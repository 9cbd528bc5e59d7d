package api_test

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// decodes returns whether Go decodes a spec of a kind.
func decodes(kind, spec string) bool {
	if kind == v1alpha1.GateKind {
		return yaml.Unmarshal([]byte(spec), &v1alpha1.GateSpec{}) == nil
	}
	return yaml.Unmarshal([]byte(spec), &v1alpha1.GateExceptionSpec{}) == nil
}

// TestUndecodableTimeIsRefused protects every Gate and exception in the cluster: the controller could list none of them if one
// could not be decoded. The date-time format of OpenAPI is more lenient than Go's parser for RFC 3339.
func TestUndecodableTimeIsRefused(t *testing.T) {
	for _, value := range []string{
		"2026-12-19t00:00:00z", "2026-12-19T00:00:00z", "2026-12-19T00:00:00+99:99", "2026-12-19T00:00:00+25:00",
		"2026-12-19T00:00:00x5Z", "2026-12-19 00:00:00Z", "2026-12-19T00:00:00", "2026-12-19", "2026-12-19T24:00:00Z", "2026-12-19T00:00:60Z", "",
	} {
		for field, in := range map[string]struct {
			subject subject
			spec    string
		}{
			"notBefore":  {subjects[0], `{default: closed, notBefore: %q}`},
			"notAfter":   {subjects[0], `{default: closed, notAfter: %q}`},
			"from":       {subjects[0], `{default: closed, openPeriods: [{name: a, from: %q, until: "2030-01-01T00:00:00Z"}]}`},
			"until":      {subjects[0], `{default: closed, closePeriods: [{name: a, from: "2020-01-01T00:00:00Z", until: %q}]}`},
			"validFrom":  {subjects[1], `{gateRef: {name: a}, default: closed, validFrom: %q, validUntil: "2027-01-01T00:00:00Z"}`},
			"validUntil": {subjects[1], `{gateRef: {name: a}, default: closed, validFrom: "2026-12-01T00:00:00Z", validUntil: %q}`},
		} {
			spec := fmt.Sprintf(in.spec, value)
			err := admitKind(t, in.subject.kind, spec)
			decoded := decodes(in.subject.kind, spec)
			if err == nil && !decoded {
				t.Errorf("%s: %q is accepted, but cannot be decoded", field, value)
			}
			if err != nil && !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %q is refused without naming the field: %v", field, value, err)
			}
		}
	}
}
