package v1alpha1

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +structType=atomic

// LabelSelector selects objects by label. An object must meet all
// requirements. An empty selector selects all objects.
type LabelSelector struct {
	// matchLabels are labels that the objects must have, such as team: shop. At
	// most 32.
	// +optional
	MatchLabels Labels `json:"matchLabels,omitempty"`

	// matchExpressions are label selector requirements that the objects must meet
	// in addition to matchLabels, such as {key: tier, operator: NotIn, values:
	// [test]}. At most 32.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	MatchExpressions []LabelSelectorRequirement `json:"matchExpressions,omitempty"`
}

// Labels are labels that an object must have. At most 32.
// +kubebuilder:object:generate=false
// +kubebuilder:validation:MaxProperties=32
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-.\\\\w]{0,61}[A-Za-z0-9])?$') && k.indexOf('/') <= 253 && self[k].matches('^([A-Za-z0-9]([-.\\\\w]*[A-Za-z0-9])?)?$'))",message="must be Kubernetes labels, such as tier: critical or example.com/tier: critical: a key has an optional prefix of at most 253 characters, which is a DNS subdomain, and a name of at most 63; names and values have only letters, digits, dashes, underscores and dots, and begin and end with a letter or digit"
type Labels map[string]LabelValue

// DeepCopy returns a copy. It is not generated, because controller-gen does
// not support the alias LabelValue in a map.
func (in Labels) DeepCopy() Labels { return maps.Clone(in) }

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
type LabelValue = string

// LabelSelectorRequirement is a requirement for a label.
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['In', 'NotIn']) || has(self.values) && size(self.values) > 0",message="the operators In and NotIn need values, such as values: [test]; for any value use the operator Exists"
// +kubebuilder:validation:XValidation:rule="!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values) || size(self.values) == 0",message="the operators Exists and DoesNotExist have no values: remove them, or use the operator In or NotIn"
type LabelSelectorRequirement struct {
	// key is the key of the label, such as tier or example.com/tier.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^([-a-z0-9.]+/)?\\\\w([-.\\\\w]*\\\\w)?$')",message="key must be the key of a label, such as tier or example.com/tier"
	// +kubebuilder:validation:XValidation:rule="!self.matches('(^|/)_|_$|[^/]{64}$')",message="the name of a key must have at most 63 characters, and begin and end with a letter or digit, such as tier or example.com/tier"
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253 && !self.matches('(^[-.]|[.][-.]|-[.]).*/|[-.]/')",message="the prefix of a key must be a DNS subdomain of at most 253 characters, such as example.com in example.com/tier"
	// +required
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist. An object without the label
	// meets NotIn and DoesNotExist.
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	// +required
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values lists values of the label, for the operators In and NotIn. At most
	// 64, each with at most 63 characters.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
	// +listType=atomic
	// +optional
	Values []string `json:"values,omitempty"`
}

// Kubernetes returns the selector as a metav1.LabelSelector, nil for a nil
// selector.
func (in *LabelSelector) Kubernetes() *metav1.LabelSelector {
	if in == nil {
		return nil
	}
	return selectorOf(in.MatchLabels, in.MatchExpressions)
}

// selectorOf returns a metav1.LabelSelector with the given labels and
// requirements.
func selectorOf(labels map[string]string, expressions []LabelSelectorRequirement) *metav1.LabelSelector {
	selector := &metav1.LabelSelector{MatchLabels: labels}
	for _, e := range expressions {
		selector.MatchExpressions = append(selector.MatchExpressions, metav1.LabelSelectorRequirement(e))
	}
	return selector
}
