package verdict

import (
	"k8s.io/utils/ptr"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Terms returns the combined terms on which Gates hold a Certificate. The margin is the smallest one, because the last Gate determines
// when the Certificate is released. The terms are strict if any Gate has strict terms. A Gate that does not exist has the default
// terms. A Gate with mode Audit that releases the Certificate has no terms. If no Gate has terms, the default margin applies.
func Terms(holders []Gate) target.Terms {
	var terms target.Terms
	known := false
	for _, g := range holders {
		if g.Audits && g.Effect == Open {
			continue
		}
		var policy v1alpha1.CertificatePolicy
		if g.Object != nil {
			policy = ptr.Deref(g.Object.Spec.Certificates, policy)
		}
		if margin := policy.SafetyMargin.Or(v1alpha1.DefaultSafetyMargin); !known || margin < terms.Margin {
			terms.Margin, known = margin, true
		}
		terms.Strict = terms.Strict || policy.Strict
	}
	if !known {
		terms.Margin = v1alpha1.DefaultSafetyMargin
	}
	return terms
}
