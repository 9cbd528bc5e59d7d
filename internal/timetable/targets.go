package timetable

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// maxSelected bounds the labels and the expressions of a selector, as the CRD does.
const maxSelected = 32

// ValidateTargets returns the errors of spec.targets of a Gate or an exception. The matches of an invalid selector are unknown.
func ValidateTargets(refs []v1alpha1.TargetReference) (errs field.ErrorList) {
	for i := range refs {
		ref, path := &refs[i], field.NewPath("spec", "targets").Index(i)
		errs = append(errs, ValidateSelector(path, ref.Selector())...)
		if ref.NamespaceSelector == nil {
			continue
		}
		errs = append(errs, ValidateSelector(path.Child("namespaceSelector"), ref.NamespaceSelector.Kubernetes())...)
		if ref.Namespace != "" {
			errs = append(errs, field.Invalid(path.Child("namespace"), ref.Namespace, msgNamespaceTwice))
		}
	}
	return errs
}

// ValidateSelector returns the errors of a label selector.
func ValidateSelector(path *field.Path, selector *metav1.LabelSelector) (errs field.ErrorList) {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return nil
	}
	if n := max(len(selector.MatchLabels), len(selector.MatchExpressions)); n > maxSelected {
		errs = append(errs, field.TooMany(path, n, maxSelected))
	}
	return append(errs, validation.ValidateLabelSelector(selector, validation.LabelSelectorValidationOptions{}, path)...)
}
