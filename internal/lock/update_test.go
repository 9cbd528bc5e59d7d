package lock_test

import (
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
)

func part(locked bool, refs ...v1alpha1.TargetReference) *lock.Part {
	s := lock.NewPart(locked, refs...)
	return &s
}

func TestUpdateKeepsOtherParts(t *testing.T) {
	apps := v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}
	team := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "a"}}
	spec := lockv1alpha1.GateLockSpec{}
	for i, step := range []struct {
		parts   map[string]*lock.Part
		changed bool
		locked  []string
	}{
		{map[string]*lock.Part{"shop/a": nil}, false, nil},
		{map[string]*lock.Part{"shop/a": part(true, apps), "shop/b": part(true, team), "shop/c": part(false)}, true, []string{"shop/a", "shop/b"}},
		{map[string]*lock.Part{"shop/a": part(true, apps)}, false, []string{"shop/a", "shop/b"}},
		{map[string]*lock.Part{"shop/a": part(true, team)}, true, []string{"shop/a", "shop/b"}},
		{map[string]*lock.Part{"shop/a": part(false)}, true, []string{"shop/b"}},
		{map[string]*lock.Part{"shop/b": nil, "shop/c": nil}, true, nil},
		{map[string]*lock.Part{"shop/a": nil, "shop/b": nil}, true, nil},
	} {
		if got := lock.Update(&spec, step.parts); got != step.changed {
			t.Errorf("step %d: changed is %t", i, got)
		}
		if got := lock.Lockers(&spec, lock.Object{Kind: "Kustomization", Name: "apps", Labels: map[string]string{"team": "a", "tier": "web"}}); !slices.Equal(got, step.locked) {
			t.Errorf("step %d: locked by %v, want %v", i, got, step.locked)
		}
		if got := len(spec.Labels["Kustomization/team=a"]); got > 1 {
			t.Errorf("step %d: Gates with equal labels have %d entries, want one", i, got)
		}
	}
	if len(spec.Gates)+len(spec.Targets)+len(spec.Labels)+len(spec.Selectors) > 0 {
		t.Errorf("no gate has a part, but there is %+v", spec)
	}
}

func TestLockersForObject(t *testing.T) {
	spec := lockv1alpha1.GateLockSpec{}
	lock.Update(&spec, map[string]*lock.Part{
		"shop/name":   part(true, v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}),
		"shop/all":    part(true, v1alpha1.TargetReference{Kind: "HelmRelease", Name: v1alpha1.AnyName}),
		"shop/labels": part(true, v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "a", "tier": "web"}}),
		"shop/expressions": part(true, v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "b"}, MatchExpressions: []v1alpha1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"test", "db"}},
		}}),
		"shop/open": part(false, v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}),
	})
	for name, test := range map[string]struct {
		kind, name string
		labels     map[string]string
		named      []string
		want       []string
	}{
		"by its name":                {"Kustomization", "apps", nil, nil, []string{"shop/name"}},
		"another name":               {"Kustomization", "infra", nil, nil, nil},
		"another kind":               {"HelmRelease", "apps", nil, nil, []string{"shop/all"}},
		"by its labels":              {"Kustomization", "infra", map[string]string{"team": "a", "tier": "web", "x": "y"}, nil, []string{"shop/labels"}},
		"some labels are not enough": {"Kustomization", "infra", map[string]string{"team": "a"}, nil, nil},
		"another value":              {"Kustomization", "infra", map[string]string{"team": "a", "tier": "db"}, nil, nil},
		"expressions match":          {"Kustomization", "infra", map[string]string{"team": "b", "tier": "web"}, nil, []string{"shop/expressions"}},
		"an expression does not":     {"Kustomization", "infra", map[string]string{"team": "b", "tier": "db"}, nil, nil},
		"a label of them is missing": {"Kustomization", "infra", map[string]string{"tier": "web"}, nil, nil},
		"it names gates":             {"Kustomization", "infra", nil, []string{"shop/all", "shop/open", "shop/unknown"}, []string{"shop/all", "shop/unknown"}},
		"twice by the same gate":     {"HelmRelease", "apps", nil, []string{"shop/all"}, []string{"shop/all"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lock.Lockers(&spec, lock.Object{Kind: test.kind, Name: test.name, Labels: test.labels, Gates: test.named}); !reflect.DeepEqual(slices.Clip(got), slices.Clip(test.want)) && len(got)+len(test.want) > 0 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestLockersInLockOfAllNamespaces(t *testing.T) {
	ref := func(edit func(*v1alpha1.TargetReference)) v1alpha1.TargetReference {
		r := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, Namespace: v1alpha1.AnyName}
		edit(&r)
		return r
	}
	spec := lockv1alpha1.GateLockSpec{}
	lock.Update(&spec, map[string]*lock.Part{
		"ops/all":   part(true, ref(func(r *v1alpha1.TargetReference) { r.Kind = "HelmRelease" })),
		"ops/named": part(true, ref(func(r *v1alpha1.TargetReference) { r.Name = "apps" })),
		"ops/shop": part(true, ref(func(r *v1alpha1.TargetReference) {
			r.Namespace, r.NamespaceSelector = "", &v1alpha1.LabelSelector{MatchLabels: map[string]string{"team": "shop"}}
		})),
		"ops/critical": part(true, ref(func(r *v1alpha1.TargetReference) { r.MatchLabels = map[string]string{"tier": "critical"} })),
		"ops/open":     part(false, ref(func(*v1alpha1.TargetReference) {})),
	})
	for name, test := range map[string]struct {
		object lock.Object
		want   []string
	}{
		"all of its kind":              {lock.Object{Kind: "HelmRelease", Name: "web"}, []string{"ops/all"}},
		"its name":                     {lock.Object{Kind: "Kustomization", Name: "apps"}, []string{"ops/named"}},
		"another name":                 {lock.Object{Kind: "Kustomization", Name: "infra"}, nil},
		"the labels of its namespace":  {lock.Object{Kind: "Kustomization", Name: "infra", NamespaceLabels: map[string]string{"team": "shop"}}, []string{"ops/shop"}},
		"its own labels are not those": {lock.Object{Kind: "Kustomization", Name: "infra", Labels: map[string]string{"team": "shop"}}, nil},
		"its labels":                   {lock.Object{Kind: "Kustomization", Name: "infra", Labels: map[string]string{"tier": "critical"}}, []string{"ops/critical"}},
		"the gates that it names are for the lock of its namespace": {lock.Object{Kind: "Kustomization", Name: "infra", Gates: []string{"ops/all"}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lock.Selecting(&spec, test.object); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
