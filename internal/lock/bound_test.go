package lock

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// selectingRefs returns n references, each with another selector, and with some values of one expression.
func selectingRefs(kind string, n, values int) (refs []v1alpha1.TargetReference) {
	for i := range n {
		e := v1alpha1.LabelSelectorRequirement{Key: fmt.Sprintf("key-%d", i), Operator: metav1.LabelSelectorOpNotIn}
		for j := range values {
			e.Values = append(e.Values, fmt.Sprint(j))
		}
		refs = append(refs, v1alpha1.TargetReference{Kind: kind, Name: "*", MatchExpressions: []v1alpha1.LabelSelectorRequirement{e}})
	}
	return refs
}

// labelledRefs returns n references that each match some labels: those with the same first label, or with a first label of their own.
func labelledRefs(own, n, labels int) (refs []v1alpha1.TargetReference) {
	for i := range n {
		match := map[string]string{"app": fmt.Sprint(own * i)}
		for j := range labels - 1 {
			match[fmt.Sprintf("label-%d", j)] = fmt.Sprint(i)
		}
		refs = append(refs, v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchLabels: match})
	}
	return refs
}

func TestEntriesOverPolicyCostAreDropped(t *testing.T) {
	few := NewPart(true, selectingRefs("Kustomization", 3, 1)...)
	for name, tc := range map[string]struct {
		refs []v1alpha1.TargetReference
		left []string
	}{
		"a gate with as many as it can have":        {selectingRefs("Kustomization", 256, 1), nil},
		"thousands":                                 {selectingRefs("Kustomization", 5000, 1), []string{"ns/b"}},
		"one with more values than can be compared": {selectingRefs("Kustomization", 1, 100_000), []string{"ns/b"}},
		"few with the same first label":             {labelledRefs(0, 100, 2), nil},
		"too many with the same first label":        {labelledRefs(0, 2000, 2), []string{"ns/b"}},
		"too many labels with the same first label": {labelledRefs(0, 200, 32), []string{"ns/b"}},
		"many with a label of their own":            {labelledRefs(1, lockv1alpha1.MaxLockedLabels, 1), nil},
		"too many with a label of their own":        {labelledRefs(1, lockv1alpha1.MaxLockedLabels+1, 1), []string{"ns/b"}},
		"each kind has its own bound":               {append(selectingRefs("Kustomization", 1500, 1), selectingRefs("HelmRelease", 1500, 1)...), nil},
	} {
		t.Run(name, func(t *testing.T) {
			spec := lockv1alpha1.GateLockSpec{}
			Update(&spec, map[string]*Part{"ns/a": &few})
			part := NewPart(true, tc.refs...)
			Update(&spec, map[string]*Part{"ns/a": &few, "ns/b": &part})
			if left := Bound(&spec); !slices.Equal(left, tc.left) {
				t.Errorf("left out are %v, want %v", left, tc.left)
			}
			if read := Read(&spec); !read["ns/a"].Equal(few) || read["ns/b"].Equal(part) != (tc.left == nil) {
				t.Error("what was there does not stay, or what has room is left out")
			}
			once := fmt.Sprint(spec)
			Update(&spec, map[string]*Part{"ns/a": &few, "ns/b": &part})
			if Bound(&spec); fmt.Sprint(spec) != once {
				t.Error("it is another one each time")
			}
		})
	}
}

func TestCostOfEntries(t *testing.T) {
	gates := []string{"ns/a", "ns/b"}
	if got, want := spendsByLabel(&lockv1alpha1.LabelLock{Gates: gates, MatchLabels: map[string]string{"x": "1"}}), ofEntry+ofRequirement+2*ofGate; got != want {
		t.Errorf("the cost of labels is %d, want %d", got, want)
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"x": "1"}, MatchExpressions: selectingRefs("", 1, 3)[0].Selector().MatchExpressions}
	if got, want := spends(&lockv1alpha1.SelectorLock{Gates: gates, NamespaceSelector: selector}), ofEntry+2*ofRequirement+3*ofValue+2*ofGate; got != want {
		t.Errorf("the cost of a selector is %d, want %d", got, want)
	}
	if got := fitting([]int{4, 6, 1}, 10, func(cost *int) int { return *cost }); got != 2 {
		t.Errorf("%d fit, want 2", got)
	}
}

func TestInvalidSelectorsAreDropped(t *testing.T) {
	bad := []v1alpha1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}
	for _, ref := range []v1alpha1.TargetReference{
		{Kind: "Kustomization", Name: "*", MatchExpressions: bad}, {Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{MatchExpressions: bad}},
	} {
		if !NewPart(true, ref).Equal(NewPart(true)) {
			t.Errorf("%+v is not dropped", ref)
		}
	}
}
