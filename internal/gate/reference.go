package verdict

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// TextOf formats a reference as text, such as Kustomization * in shop with tier=critical.
func TextOf(ref *v1alpha1.TargetReference) string {
	text := ref.Kind + " " + ref.Name
	switch {
	case ref.Namespace == v1alpha1.AnyName:
		text += " in all namespaces"
	case ref.Namespace != "":
		text += " in " + ref.Namespace
	case ref.NamespaceSelector != nil:
		text += " in namespaces with " + selectorOf(ref.NamespaceSelector.Kubernetes())
	}
	if len(ref.MatchLabels)+len(ref.MatchExpressions) > 0 {
		text += " with " + selectorOf(ref.Selector())
	}
	return text
}

// selectorOf formats a selector in the syntax of kubectl.
func selectorOf(selector *metav1.LabelSelector) string {
	if len(selector.MatchLabels)+len(selector.MatchExpressions) == 0 {
		return "any labels"
	}
	return metav1.FormatLabelSelector(selector)
}
