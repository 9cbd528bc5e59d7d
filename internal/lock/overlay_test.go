package lock_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/lock"
)

// overlaid adds an overlay of an exception to a part. Gates that are open have the targets only for overlays.
func overlaid(p *lock.Part, locks bool, namespace string, refs ...v1alpha1.TargetReference) *lock.Part {
	return overlaidBy(false, p, locks, namespace, refs...)
}

func overlaidBy(request bool, p *lock.Part, locks bool, namespace string, refs ...v1alpha1.TargetReference) *lock.Part {
	for _, ref := range refs {
		p.AddOverlay(locks, request, []v1alpha1.TargetReference{ref}, []string{namespace}, []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}})
	}
	return p
}

func TestLockersWithOverlays(t *testing.T) {
	all := v1alpha1.TargetReference{Kind: "Kustomization", Name: "*"}
	apps := v1alpha1.TargetReference{Kind: "Kustomization", Name: "apps"}
	team := v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchLabels: map[string]string{"team": "a"}}
	inTeam := v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: team.MatchLabels}}
	invalid := v1alpha1.TargetReference{Kind: "Kustomization", Name: "*", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "x", Operator: "Near"}}}
	const g = "shop/g"
	for name, test := range map[string]struct {
		part   *lock.Part
		object lock.Object
		locked bool
	}{
		"closed, opened for it":               {overlaid(part(true, all), false, "", apps), lock.Object{Name: "apps"}, false},
		"closed, opened for another one":      {overlaid(part(true, all), false, "", apps), lock.Object{Name: "infra"}, true},
		"closed, opened for its labels":       {overlaid(part(true, all), false, "", team), lock.Object{Name: "apps", Labels: team.MatchLabels}, false},
		"closed, opened for other labels":     {overlaid(part(true, all), false, "", team), lock.Object{Name: "apps"}, true},
		"closed, opened for its namespace":    {overlaid(part(true, all), false, "", inTeam), lock.Object{Name: "apps", NamespaceLabels: team.MatchLabels}, false},
		"closed, opened for other namespaces": {overlaid(part(true, all), false, "", inTeam), lock.Object{Name: "apps"}, true},
		"closed, opened in its namespace":     {overlaid(part(true, all), false, "shop", apps), lock.Object{Name: "apps"}, false},
		"closed, opened in another namespace": {overlaid(part(true, all), false, "infra", apps), lock.Object{Name: "apps"}, true},
		"closed, opened for what it names":    {overlaid(part(true), false, "", apps), lock.Object{Name: "apps", Gates: []string{g}}, false},
		"closed, an invalid selector":         {overlaid(part(true, all), false, "", invalid), lock.Object{Name: "apps"}, true},
		"closed, opened and closed":           {overlaid(overlaid(part(true, all), false, "", all), true, "", apps), lock.Object{Name: "apps"}, true},
		"closed, opened on request":           {overlaid(overlaidBy(true, part(true, all), false, "", apps), true, "", all), lock.Object{Name: "apps"}, false},
		"closed again on request":             {overlaidBy(true, overlaid(part(true, all), false, "", apps), true, "", apps), lock.Object{Name: "apps"}, true},
		"open, opened and closed on request":  {overlaidBy(true, overlaidBy(true, part(false), true, "", apps), false, "", all), lock.Object{Name: "apps"}, true},
		"closed, another opened on request":   {overlaid(overlaidBy(true, part(true, all), false, "", apps), true, "", all), lock.Object{Name: "infra"}, true},
		"open, closed for it":                 {overlaid(part(false), true, "", apps), lock.Object{Name: "apps"}, true},
		"open, closed for another one":        {overlaid(part(false), true, "", apps), lock.Object{Name: "infra"}, false},
		"open, closed for what names it":      {overlaid(part(false), true, "", apps), lock.Object{Name: "apps", Gates: []string{g}}, true},
		"open, named by another one":          {overlaid(part(false), true, "", apps), lock.Object{Name: "infra", Gates: []string{g}}, false},
	} {
		spec := lockv1alpha1.GateLockSpec{}
		lock.Update(&spec, map[string]*lock.Part{g: test.part})
		test.object.Kind, test.object.Namespace = "Kustomization", "shop"
		if got := lock.Lockers(&spec, test.object); len(got) > 0 != test.locked {
			t.Errorf("%s: locked by %v, want locked %t", name, got, test.locked)
		}
		if lock.Update(&spec, map[string]*lock.Part{g: test.part}) {
			t.Errorf("%s: a second update changes it", name)
		}
		if lock.Update(&spec, map[string]*lock.Part{g: nil}); len(spec.Overlays)+len(spec.Targets)+len(spec.Gates) > 0 {
			t.Errorf("%s: without the gate it is %+v", name, spec)
		}
	}
}

// Overlays that unlock objects are left out first, so that the objects stay locked.
func TestOverlaysOverLimitStayLocked(t *testing.T) {
	parts := map[string]*lock.Part{}
	for i := range lockv1alpha1.MaxOverlayLocks {
		ref := v1alpha1.TargetReference{Kind: []string{"Kustomization", "HelmRelease"}[i%2], Name: fmt.Sprintf("app-%02d", i)}
		parts["shop/a"] = overlaid(cmp.Or(parts["shop/a"], part(true)), false, "", ref)
	}
	spec := lockv1alpha1.GateLockSpec{}
	lock.Update(&spec, parts)
	if left := lock.Bound(&spec); len(left) > 0 {
		t.Errorf("as many as fit: left out are %v", left)
	}
	parts["shop/b"] = overlaid(part(false), true, "", v1alpha1.TargetReference{Kind: "Kustomization", Name: "web"}, v1alpha1.TargetReference{Kind: "Kustomization", Name: "api"})
	lock.Update(&spec, parts)
	if left := lock.Bound(&spec); !slices.Equal(left, []string{"shop/a"}) {
		t.Errorf("left out are %v", left)
	}
	if n := len(spec.Overlays["Kustomization"]) + len(spec.Overlays["HelmRelease"]); n != lockv1alpha1.MaxOverlayLocks {
		t.Errorf("%d overlays", n)
	}
	for _, name := range []string{"web", "api"} {
		if got := lock.Lockers(&spec, lock.Object{Kind: "Kustomization", Namespace: "shop", Name: name}); !slices.Equal(got, []string{"shop/b"}) {
			t.Errorf("%s is locked by %v", name, got)
		}
	}
}
