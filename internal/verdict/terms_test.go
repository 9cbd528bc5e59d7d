package verdict_test

import (
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// letting has a Gate let certificates go some time before they expire.
func letting(margin time.Duration, strict bool) gateOption {
	return func(g *v1alpha1.Gate) {
		g.Spec.Certificates = &v1alpha1.CertificatePolicy{SafetyMargin: &v1alpha1.Duration{Duration: margin}, Strict: strict}
	}
}

func TestLastGateReleasesCertificate(t *testing.T) {
	const hour = time.Hour
	for name, test := range map[string]struct {
		holders []verdict.Gate
		want    target.Terms
	}{
		"no gate":                     {nil, target.Terms{Margin: v1alpha1.DefaultSafetyMargin}},
		"a gate says nothing":         {governing(closed("a")), target.Terms{Margin: v1alpha1.DefaultSafetyMargin}},
		"the longer margin is first":  {governing(closed("a", letting(2*hour, false)), closed("b", letting(hour, false))), target.Terms{Margin: hour}},
		"the shorter margin is first": {governing(closed("a", letting(hour, false)), closed("b", letting(2*hour, false))), target.Terms{Margin: hour}},
		"one is strict":               {governing(closed("a", letting(hour, true)), closed("b", letting(2*hour, false))), target.Terms{Margin: hour, Strict: true}},
		"one does not exist":          {append(governing(closed("a", letting(hour, false))), verdict.Gate{Name: "shop/m", Effect: verdict.Missing}), target.Terms{Margin: hour}},
		"a missing one is first":      {append(governing(closed("a", letting(72*hour, false))), verdict.Gate{Name: "shop/m", Effect: verdict.Missing}), target.Terms{Margin: v1alpha1.DefaultSafetyMargin}},
		"an open gate with Enforce":   {governing(opened("a", letting(hour, true))), target.Terms{Margin: hour, Strict: true}},
		"one has mode Audit":          {governing(closed("a", letting(2*hour, false)), closed("b", letting(hour, true), audits)), target.Terms{Margin: 2 * hour}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verdict.Terms(test.holders); got.Margin != test.want.Margin || got.Strict != test.want.Strict {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
