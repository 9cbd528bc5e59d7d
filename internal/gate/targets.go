package gate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxSelected bounds the labels and the expressions of a selector, as in the CRD.
const maxSelected = 32

// targets refuses selectors that nobody can evaluate: of such a spec nobody knows what it is meant to govern.
func (c *compiler) targets(g *v1alpha1.Gate) {
	for i := range g.Spec.Targets {
		ref, path := &g.Spec.Targets[i], field.NewPath("spec", "targets").Index(i)
		c.selector(path, ref.Selector())
		if ref.NamespaceSelector == nil {
			continue
		}
		c.selector(path.Child("namespaceSelector"), ref.NamespaceSelector.Kubernetes())
		if ref.Namespace != "" {
			c.add(field.Invalid(path.Child("namespace"), ref.Namespace, "a target has a namespace or a namespaceSelector, not both"))
		}
	}
}

func (c *compiler) selector(path *field.Path, selector *metav1.LabelSelector) {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return
	}
	if n := max(len(selector.MatchLabels), len(selector.MatchExpressions)); n > maxSelected {
		c.add(field.TooMany(path, n, maxSelected))
	}
	c.errs = append(c.errs, validation.ValidateLabelSelector(selector, validation.LabelSelectorValidationOptions{}, path)...)
}
