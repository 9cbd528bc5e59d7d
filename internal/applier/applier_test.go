package applier_test

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/applier"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

func TestAppliersAndTheirSources(t *testing.T) {
	appliers := applier.Appliers(map[string]string{
		"kustomize.toolkit.fluxcd.io/name": "gates", "kustomize.toolkit.fluxcd.io/namespace": "flux-system",
		"helm.toolkit.fluxcd.io/name": "gates", "helm.toolkit.fluxcd.io/namespace": "team", "app": "gates",
	})
	want := []applier.Reference{{Kind: "Kustomization", Namespace: "flux-system", Name: "gates"}, {Kind: "HelmRelease", Namespace: "team", Name: "gates"}}
	if !slices.Equal(appliers, want) {
		t.Fatalf("got %v", appliers)
	}
	ref := func(kind, name, namespace string) map[string]any {
		if namespace == "" {
			return map[string]any{"kind": kind, "name": name}
		}
		return map[string]any{"kind": kind, "name": name, "namespace": namespace}
	}
	for name, test := range map[string]struct {
		spec    map[string]any
		applier applier.Reference
		want    []string
	}{
		"a source in the same namespace":  {map[string]any{"sourceRef": ref("GitRepository", "repo", "")}, appliers[0], []string{"GitRepository flux-system/repo"}},
		"a source in another namespace":   {map[string]any{"sourceRef": ref("OCIRepository", "repo", "sources")}, appliers[0], []string{"OCIRepository sources/repo"}},
		"a chart":                         {map[string]any{"chartRef": ref("HelmChart", "chart", "")}, appliers[1], []string{"HelmChart team/chart"}},
		"a chart that Flux makes":         {map[string]any{"chart": map[string]any{"spec": map[string]any{"chart": "x", "sourceRef": ref("HelmRepository", "charts", "sources")}}}, appliers[1], []string{"HelmRepository sources/charts", "HelmChart sources/team-gates"}},
		"nothing that anybody could read": {nil, appliers[0], nil},
	} {
		known := applier.Objects{}
		if test.spec != nil {
			known[test.applier] = &unstructured.Unstructured{Object: map[string]any{"spec": test.spec}}
		}
		var got []string
		for _, r := range known.Sources(test.applier) {
			got = append(got, r.String())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestGateGovernsUnreadableObjectByName(t *testing.T) {
	g := &v1alpha1.Gate{}
	g.Namespace = "flux-system"
	g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "*"}}
	ref := applier.Reference{Kind: "Kustomization", Namespace: "flux-system", Name: "gates"}
	if got := (applier.Objects{}).Governed(g, []applier.Reference{ref}, verdict.Scope{}); !slices.Equal(got, []applier.Reference{ref}) {
		t.Errorf("got %v", got)
	}
	ref.Namespace = "elsewhere"
	if got := (applier.Objects{}).Governed(g, []applier.Reference{ref}, verdict.Scope{}); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}
