package gate_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

func TestTargetsMatchingBootstrapSource(t *testing.T) {
	type ref = v1alpha1.TargetReference
	for name, tc := range map[string]struct {
		namespace string
		target    ref
		want      bool
	}{
		"all repositories of flux-system":        {"flux-system", ref{Kind: "GitRepository", Name: "*"}, true},
		"all Kustomizations of flux-system":      {"flux-system", ref{Kind: "Kustomization", Name: "*"}, true},
		"the repository by its name":             {"gates", ref{Kind: "GitRepository", Name: "flux-system", Namespace: "flux-system"}, true},
		"the repositories of all namespaces":     {"gates", ref{Kind: "OCIRepository", Name: "*", Namespace: "*"}, true},
		"another repository":                     {"flux-system", ref{Kind: "GitRepository", Name: "apps"}, false},
		"all repositories of another namespace":  {"apps", ref{Kind: "GitRepository", Name: "*"}, false},
		"all HelmReleases":                       {"flux-system", ref{Kind: "HelmRelease", Name: "*"}, false},
		"those with a label":                     {"flux-system", ref{Kind: "GitRepository", Name: "*", MatchLabels: map[string]string{"team": "shop"}}, false},
		"those of the namespaces of a selector":  {"gates", ref{Kind: "GitRepository", Name: "*", NamespaceSelector: &v1alpha1.LabelSelector{}}, false},
		"an object of the name in another place": {"apps", ref{Kind: "Kustomization", Name: "flux-system"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: tc.namespace}}
			g.Spec.Targets = []ref{{Kind: "HelmRelease", Name: "shop"}, tc.target}
			var want []int
			if tc.want {
				want = []int{1}
			}
			if got := gate.HoldsBootstrap(g); !slices.Equal(got, want) {
				t.Errorf("entries %v, want %v", got, want)
			}
		})
	}
}
