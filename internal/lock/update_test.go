package lock_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
)

func share(locked bool, refs ...v1alpha1.TargetReference) *lock.Share {
	s := lock.NewShare(locked, refs...)
	return &s
}

func TestUpdateChangesOnlyWhatIsNew(t *testing.T) {
	apps := v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}
	team := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "a"}}
	spec := v1alpha1.GateLockSpec{}
	for i, step := range []struct {
		shares  map[string]*lock.Share
		changed bool
		locked  []string
	}{
		{map[string]*lock.Share{"shop/a": nil}, false, nil},
		{map[string]*lock.Share{"shop/a": share(true, apps), "shop/b": share(true, team), "shop/c": share(false)}, true, []string{"shop/a", "shop/b"}},
		{map[string]*lock.Share{"shop/a": share(true, apps)}, false, []string{"shop/a", "shop/b"}},
		{map[string]*lock.Share{"shop/a": share(false)}, true, []string{"shop/b"}},
		{map[string]*lock.Share{"shop/b": nil, "shop/c": nil}, true, nil},
		{map[string]*lock.Share{"shop/a": nil, "shop/b": nil}, true, nil},
	} {
		if got := lock.Update(&spec, step.shares); got != step.changed {
			t.Errorf("step %d: changed is %t", i, got)
		}
		if got := lock.Lockers(&spec, "Kustomization", "apps", map[string]string{"team": "a", "tier": "web"}, nil); !slices.Equal(got, step.locked) {
			t.Errorf("step %d: locked by %v, want %v", i, got, step.locked)
		}
	}
	if len(spec.Gates)+len(spec.Targets)+len(spec.Labels) > 0 {
		t.Errorf("no gate has a share, but there is %+v", spec)
	}
}

func TestWhoLocksAnObject(t *testing.T) {
	spec := v1alpha1.GateLockSpec{}
	lock.Update(&spec, map[string]*lock.Share{
		"shop/name":   share(true, v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}),
		"shop/all":    share(true, v1alpha1.TargetReference{Kind: "HelmRelease", Name: v1alpha1.AnyName}),
		"shop/labels": share(true, v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": "a", "tier": "web"}}),
		"shop/open":   share(false, v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}),
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
		"it names gates":             {"Kustomization", "infra", nil, []string{"shop/all", "shop/open", "shop/unknown"}, []string{"shop/all", "shop/unknown"}},
		"twice by the same gate":     {"HelmRelease", "apps", nil, []string{"shop/all"}, []string{"shop/all"}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lock.Lockers(&spec, test.kind, test.name, test.labels, test.named); !reflect.DeepEqual(slices.Clip(got), slices.Clip(test.want)) && len(got)+len(test.want) > 0 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
