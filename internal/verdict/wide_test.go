package verdict_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// kustomizations returns n Kustomizations of a team in a namespace.
func kustomizations(namespace, team string, n int) (objects []*unstructured.Unstructured) {
	for i := range n {
		obj := &unstructured.Unstructured{}
		obj.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
		obj.SetKind("Kustomization")
		obj.SetNamespace(namespace)
		obj.SetName(fmt.Sprintf("%s-%d", team, i))
		obj.SetLabels(map[string]string{"team": team})
		objects = append(objects, obj)
	}
	return objects
}

func TestSelectorIsWideIfTargetsMultiply(t *testing.T) {
	of := func(team string) v1alpha1.TargetReference {
		return v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, MatchLabels: map[string]string{"team": team}}
	}
	everywhere := v1alpha1.TargetReference{Kind: "Kustomization", Name: v1alpha1.AnyName, Namespace: v1alpha1.AnyName}
	var names []v1alpha1.TargetReference
	for i := range 30 {
		names = append(names, v1alpha1.TargetReference{Kind: "Kustomization", Name: fmt.Sprintf("a-%d", i)})
	}
	for name, tc := range map[string]struct {
		targets []v1alpha1.TargetReference
		mode    v1alpha1.Mode
		before  int
		objects []*unstructured.Unstructured
		want    string
	}{
		"26 new ones":             {[]v1alpha1.TargetReference{of("a")}, "", 0, kustomizations("shop", "a", 26), "spec.targets[0] 26 objects, 26 targets"},
		"25 new ones":             {[]v1alpha1.TargetReference{of("a")}, "", 0, kustomizations("shop", "a", 25), ""},
		"not twice as many":       {[]v1alpha1.TargetReference{of("a")}, "", 50, kustomizations("shop", "a", 100), ""},
		"more than twice as many": {[]v1alpha1.TargetReference{of("a")}, "", 50, kustomizations("shop", "a", 101), "spec.targets[0] 101 objects, 101 targets"},
		"the wider one of two": {[]v1alpha1.TargetReference{of("b"), of("a")}, "", 0, append(kustomizations("shop", "a", 30), kustomizations("shop", "b", 3)...),
			"spec.targets[1] 30 objects, 33 targets"},
		"30 names":                   {names, "", 0, kustomizations("shop", "a", 30), ""},
		"another namespace":          {[]v1alpha1.TargetReference{of("a")}, "", 0, kustomizations("bank", "a", 100), ""},
		"all namespaces":             {[]v1alpha1.TargetReference{everywhere}, "", 0, kustomizations("bank", "a", 100), "spec.targets[0] 100 objects, 100 targets"},
		"the controller's namespace": {[]v1alpha1.TargetReference{everywhere}, "", 0, kustomizations("gating-system", "a", 100), ""},
		"a namespace out of reach":   {[]v1alpha1.TargetReference{everywhere}, "", 0, kustomizations("vault", "a", 100), ""},
		"with mode Audit":            {[]v1alpha1.TargetReference{everywhere}, v1alpha1.ModeAudit, 0, kustomizations("bank", "a", 100), ""},
	} {
		g := &v1alpha1.Gate{Spec: v1alpha1.GateSpec{Targets: tc.targets, Mode: tc.mode}}
		g.Namespace, g.Name = "shop", "production"
		got := ""
		if w, many := (verdict.Scope{Own: "gating-system", Reaches: func(from, to string) bool { return from == "shop" && to != "vault" }}).Widest(g, tc.before, tc.objects); many {
			got = fmt.Sprintf("%s %d objects, %d targets", w.Field(), w.Matches, w.After)
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
