package verdict_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestGovernedObjects(t *testing.T) {
	const kind = "Kustomization"
	apps := func(edits ...edit) *target.Object { return kustomization("apps", edits...) }
	for name, test := range map[string]struct {
		ref  v1alpha1.TargetReference
		obj  *target.Object
		want bool
	}{
		"by its name":                    {v1alpha1.TargetReference{Kind: kind, Name: "apps"}, apps(), true},
		"another name":                   {v1alpha1.TargetReference{Kind: kind, Name: "infra"}, apps(), false},
		"another kind":                   {v1alpha1.TargetReference{Kind: "HelmRelease", Name: "apps"}, apps(), false},
		"a kind that nobody knows":       {v1alpha1.TargetReference{Kind: "Deployment", Name: "apps"}, apps(), false},
		"another version of the kind":    {v1alpha1.TargetReference{APIVersion: "kustomize.toolkit.fluxcd.io/v1beta2", Kind: kind, Name: "apps"}, apps(), true},
		"another group":                  {v1alpha1.TargetReference{APIVersion: "example.com/v1", Kind: kind, Name: "apps"}, apps(), false},
		"all of its namespace":           {v1alpha1.TargetReference{Kind: kind, Name: v1alpha1.AnyName}, apps(), true},
		"its namespace":                  {v1alpha1.TargetReference{Kind: kind, Namespace: "shop", Name: "apps"}, apps(), true},
		"another namespace":              {v1alpha1.TargetReference{Kind: kind, Namespace: "infra", Name: "apps"}, apps(), false},
		"by its labels":                  {v1alpha1.TargetReference{Kind: kind, Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "a"}}, apps(labelled(map[string]string{"team": "a", "tier": "web"})), true},
		"other labels":                   {v1alpha1.TargetReference{Kind: kind, Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "b"}}, apps(labelled(map[string]string{"team": "a"})), false},
		"the object names the gate":      {v1alpha1.TargetReference{}, apps(annotated(v1alpha1.GatesAnnotation, "night, a")), true},
		"the object names another gate":  {v1alpha1.TargetReference{}, apps(annotated(v1alpha1.GatesAnnotation, "infra/a")), false},
		"another gate holds the object":  {v1alpha1.TargetReference{}, apps(heldBy("shop/b", suspension)), false},
		"the gate holds it, and no more": {v1alpha1.TargetReference{}, apps(heldBy("shop/a", suspension)), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := closed("a")
			g.Spec.Targets = []v1alpha1.TargetReference{test.ref}
			if got := (verdict.Scope{}).Governs(g, &test.obj.Unstructured); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestReferencesWithExpressionsAndToOtherNamespaces(t *testing.T) {
	requires := func(key string, operator metav1.LabelSelectorOperator, values ...string) []v1alpha1.LabelSelectorRequirement {
		return []v1alpha1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}
	}
	all := func(edit func(*v1alpha1.TargetReference)) v1alpha1.TargetReference {
		ref := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName}
		edit(&ref)
		return ref
	}
	inNamespaces := func(selector v1alpha1.LabelSelector) v1alpha1.TargetReference {
		return all(func(ref *v1alpha1.TargetReference) { ref.NamespaceSelector = &selector })
	}
	expressions := func(list []v1alpha1.LabelSelectorRequirement) v1alpha1.TargetReference {
		return all(func(ref *v1alpha1.TargetReference) { ref.MatchExpressions = list })
	}
	web := labelled(map[string]string{"tier": "web"})
	scope := verdict.Scope{Own: "gating-system", Labels: func(namespace string) map[string]string {
		return map[string]map[string]string{"shop": {"team": "shop"}, "gating-system": {"team": "shop"}}[namespace]
	}}
	everywhere := all(func(ref *v1alpha1.TargetReference) { ref.Namespace = v1alpha1.AnyName })
	for name, test := range map[string]struct {
		ref       v1alpha1.TargetReference
		namespace string
		want      bool
	}{
		"a label exists":                         {expressions(requires("tier", metav1.LabelSelectorOpExists)), "shop", true},
		"a label does not exist":                 {expressions(requires("team", metav1.LabelSelectorOpExists)), "shop", false},
		"a label has another value":              {expressions(requires("tier", metav1.LabelSelectorOpNotIn, "web")), "shop", false},
		"an invalid expression":                  {expressions(requires("tier", "Like", "web")), "shop", false},
		"an expression in another namespace":     {expressions(requires("tier", metav1.LabelSelectorOpExists)), "bank", false},
		"all namespaces":                         {everywhere, "bank", true},
		"all namespaces except the controller's": {everywhere, "gating-system", false},
		"namespaces with a label":                {inNamespaces(v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}), "shop", true},
		"a namespace without it":                 {inNamespaces(v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}), "bank", false},
		"the controller's namespace with it":     {inNamespaces(v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}), "gating-system", false},
		"namespaces without a label":             {inNamespaces(v1alpha1.LabelSelector{MatchExpressions: requires("team", metav1.LabelSelectorOpNotIn, "shop")}), "bank", true},
		"a namespace that has it":                {inNamespaces(v1alpha1.LabelSelector{MatchExpressions: requires("team", metav1.LabelSelectorOpNotIn, "shop")}), "shop", false},
	} {
		obj := kustomization("apps", web)
		obj.SetNamespace(test.namespace)
		g := closed("a")
		g.Spec.Targets = []v1alpha1.TargetReference{test.ref}
		if got := scope.Governs(g, &obj.Unstructured); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestGateGovernsOnlyObjectsInReach(t *testing.T) {
	g := closed("a")
	g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps", Namespace: "bank"}, {Kind: "Kustomization", Name: "apps"}}
	ownNamespace := func(from, to string) bool { return from == to }
	for name, test := range map[string]struct {
		reaches   func(from, to string) bool
		namespace string
		want      bool
	}{
		"another namespace":                   {ownNamespace, "bank", false},
		"its own namespace":                   {ownNamespace, "shop", true},
		"another namespace, reach unknown":    {nil, "bank", true},
		"a namespace to which nothing refers": {nil, "infra", false},
	} {
		obj := kustomization("apps")
		obj.SetNamespace(test.namespace)
		if got := (verdict.Scope{Reaches: test.reaches}).GovernsInReach(g, &obj.Unstructured); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestTargetNamesEachGate(t *testing.T) {
	obj := kustomization("apps", annotated(v1alpha1.GatesAnnotation, "production, ops/freeze"))
	if got := verdict.NamedBy(&obj.Unstructured); !slices.Equal(got, []string{"ops/freeze", "shop/production"}) {
		t.Errorf("got %q", got)
	}
}
