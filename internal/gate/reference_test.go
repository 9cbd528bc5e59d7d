package gate_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func TestReferenceString(t *testing.T) {
	tier := map[string]string{"tier": "critical"}
	for want, ref := range map[string]v1alpha1.TargetReference{
		"Kustomization apps":                               {Name: "apps"},
		"Kustomization * in shop with tier=critical":       {Name: "*", Namespace: "shop", MatchLabels: tier},
		"Kustomization * in all namespaces with tier":      {Name: "*", Namespace: "*", MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: "tier", Operator: "Exists"}}},
		"Kustomization * in namespaces with tier=critical": {Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{MatchLabels: tier}},
		"Kustomization * in namespaces with any labels":    {Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{}},
	} {
		ref.Kind = "Kustomization"
		if got := gate.TextOf(&ref); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestReferencesAreListedUpToLimit(t *testing.T) {
	refs := []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps"}, {Kind: "HelmRelease", Name: "*", MatchLabels: map[string]string{"team": "a"}}, {Kind: "Kustomization", Name: "c"}}
	want := "Kustomization/apps, HelmRelease/* with team=a, Kustomization/c"
	if got := gate.Only(refs); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := gate.Only(append(refs, refs...)); got != want+" and 3 more" {
		t.Errorf("got %q", got)
	}
}
