package verdict

import (
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Terms returns the combined terms on which Gates hold a Certificate: the smallest margin, because the last Gate determines when it is
// released, and strict if one of them is. Gates that do not exist, and Gates with mode Audit that release the Certificate, have no terms.
// Without any terms, the default margin applies.
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
