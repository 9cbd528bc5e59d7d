package gate

import (
	"time"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxSoak is the longest soak of a wave, as in the CRD.
const maxSoak = 168 * time.Hour

// waves reports invalid selectors and soaks: without them, the order and the pace of a release are unknown.
func (c *compiler) waves(g *v1alpha1.Gate) {
	if g.Spec.Release == nil {
		return
	}
	for i := range g.Spec.Release.Waves {
		w, at := &g.Spec.Release.Waves[i], field.NewPath("spec", "release", "waves").Index(i)
		c.selector(at, w.Selector())
		if w.Soak != nil && (w.Soak.Duration < 0 || w.Soak.Duration > maxSoak) {
			c.add(invalidDuration(at.Child("soak"), *w.Soak, "must be from 0s to 168h (7 days)"))
		}
	}
}

// validateRelease covers what the CRD's schema refuses besides.
func validateRelease(path *field.Path, policy *v1alpha1.ReleasePolicy) (errs field.ErrorList) {
	if policy == nil {
		return nil
	}
	if policy.PerMinute == 0 && len(policy.Waves) == 0 {
		errs = append(errs, field.Required(path, "release needs perMinute or waves"))
	}
	if policy.PerMinute < 0 || policy.PerMinute > 60000 {
		errs = append(errs, field.Invalid(path.Child("perMinute"), policy.PerMinute, "must be from 1 to 60000"))
	}
	if n := len(policy.Waves); n > v1alpha1.MaxWaves {
		errs = append(errs, field.TooMany(path.Child("waves"), n, v1alpha1.MaxWaves))
	}
	names := map[string]bool{}
	for i := range policy.Waves {
		w, at := &policy.Waves[i], path.Child("waves").Index(i)
		for _, message := range utilvalidation.IsDNS1123Label(w.Name) {
			errs = append(errs, field.Invalid(at.Child("name"), w.Name, message))
		}
		if names[w.Name] {
			errs = append(errs, field.Duplicate(at.Child("name"), w.Name))
		}
		names[w.Name] = true
		if len(w.MatchLabels)+len(w.MatchExpressions) == 0 {
			errs = append(errs, field.Required(at, "a wave needs matchLabels or matchExpressions"))
		}
	}
	return errs
}
