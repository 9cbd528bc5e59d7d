package preview_test

import (
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/internal/preview"
)

// TestJSONIsDecodedLikeAPIServer reads escaped surrogate pairs, which YAML does not have, and a YAML document that starts like JSON.
func TestJSONIsDecodedLikeAPIServer(t *testing.T) {
	const gate = `"spec": {"default": "closed", "openPeriods": [{"name": "w", "start": "10:00", "end": "12:00"}]}}`
	for name, text := range map[string]string{
		"JSON": `{"apiVersion": "gating.toolkit.fluxcd.io/v1alpha1", "kind": "Gate", "metadata": {"name": "shop", "namespace": "apps", "annotations": {"note": "\ud83c\udf84"}}, ` + gate,
		"YAML": `{apiVersion: gating.toolkit.fluxcd.io/v1alpha1, kind: Gate, metadata: {name: shop, namespace: apps}, ` + gate,
	} {
		set := manifests(t, text)
		if open, warnings := opens(t, set); !strings.HasPrefix(open, "apps/shop 10:00-12:00") || warnings != "" {
			t.Errorf("%s: %s; %s", name, open, warnings)
		}
	}
	set := preview.NewSet("apps")
	if err := set.Read("x.json", strings.NewReader(`{"kind": "Gate", "kind": "Gate"}`)); err != nil || set.Err() == nil {
		t.Errorf("a key that is there twice: %v, %v", err, set.Err())
	}
}

func TestMinuteBetweenClosePeriodsIsWarning(t *testing.T) {
	for end, want := range map[string]string{
		"10:59": "gates.yaml: apps/shop: spec.closePeriods: the gate is open for 1m0s between close periods a and b, from ",
		"10:58": "", "11:00": "",
	} {
		_, warnings := opens(t, manifests(t, strings.Replace(gate("shop", "12:00"), "openPeriods: [{name: day",
			`closePeriods: [{name: a, start: "08:30", end: "`+end+`"}, {name: b, start: "11:00", end: "13:00"}]
  openPeriods: [{name: day`, 1)))
		if !strings.HasPrefix(warnings, want) || want == "" && warnings != "" {
			t.Errorf("%s: %s", end, warnings)
		}
	}
}
