package gate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxSelected bounds the labels and the expressions of a selector, as the CRD does.
const maxSelected = 32

// targetErrors returns the errors of spec.targets. If a selector is invalid, the targets of the Gate are unknown.
func targetErrors(g *v1alpha1.Gate) (errs field.ErrorList) {
	for i := range g.Spec.Targets {
		ref, path := &g.Spec.Targets[i], field.NewPath("spec", "targets").Index(i)
		errs = append(errs, selectorErrors(path, ref.Selector())...)
		if ref.NamespaceSelector == nil {
			continue
		}
		errs = append(errs, selectorErrors(path.Child("namespaceSelector"), ref.NamespaceSelector.Kubernetes())...)
		if ref.Namespace != "" {
			errs = append(errs, field.Invalid(path.Child("namespace"), ref.Namespace, msgNamespaceTwice))
		}
	}
	return errs
}

func selectorErrors(path *field.Path, selector *metav1.LabelSelector) (errs field.ErrorList) {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil
	}
	if n := max(len(selector.MatchLabels), len(selector.MatchExpressions)); n > maxSelected {
		errs = append(errs, field.TooMany(path, n, maxSelected))
	}
	return append(errs, validation.ValidateLabelSelector(selector, validation.LabelSelectorValidationOptions{}, path)...)
}
