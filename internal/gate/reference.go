package gate

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// TextOf formats a reference as text, such as Kustomization * in shop with tier=critical.
func TextOf(ref *v1alpha1.TargetReference) string {
	return ref.Kind + " " + ref.Name + scopeText(ref)
}

// maxOnly bounds the number of references that Only lists.
const maxOnly = 3

// Only formats references as text, such as Kustomization/apps, HelmRelease/* with team=payments and 2 more.
func Only(refs []v1alpha1.TargetReference) string {
	var texts []string
	for i := range refs[:min(len(refs), maxOnly)] {
		texts = append(texts, refs[i].Kind+"/"+refs[i].Name+scopeText(&refs[i]))
	}
	text := strings.Join(texts, ", ")
	if more := len(refs) - maxOnly; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// scopeText returns the namespaces and labels of a reference, to be appended to its name.
func scopeText(ref *v1alpha1.TargetReference) (text string) {
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
