package verdict_test

import (
	"testing"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestWhichObjectsAGateGoverns(t *testing.T) {
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
