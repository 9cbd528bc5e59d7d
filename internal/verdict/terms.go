package verdict

import (
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Terms returns the combined terms on which Gates hold a Certificate. It is released when the last of them releases it. A Gate that does not exist
// has the default terms. A Gate with mode Audit that releases the Certificate has none.
func Terms(holders []Gate) target.Terms {
	var terms target.Terms
	known := 0
	for _, g := range holders {
		if g.Object == nil || g.Audits && g.Effect == Open {
			continue
		}
		policy := ptr.Deref(g.Object.Spec.Certificates, v1alpha1.CertificatePolicy{})
		margin := policy.SafetyMargin.Or(v1alpha1.DefaultSafetyMargin)
		if known == 0 || margin < terms.Margin {
			terms.Margin = margin
		}
		terms.Strict = terms.Strict || policy.Strict
		known++
	}
	if known == 0 {
		terms.Margin = v1alpha1.DefaultSafetyMargin
	}
	return terms
}
