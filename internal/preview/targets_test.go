package preview_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/preview"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// apps returns the manifests of n Kustomizations.
func apps(n int) (text string) {
	for i := range n {
		text += fmt.Sprintf("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: apps-%d, labels: {team: web}}\n---\n", i)
	}
	return text
}

// governing returns the manifest of a Gate with targets.
func governing(targets string) string {
	return strings.Replace(gate("web", "12:00"), "---\n", "  targets: ["+targets+"]\n---\n", 1)
}

const (
	everyApp  = `{kind: Kustomization, name: "*"}`
	everyTeam = `{kind: Kustomization, name: "*", namespaceSelector: {matchLabels: {tier: apps}}}`
	advice    = ": narrow the selector, or set mode: Audit first to see what the gate would hold"
)

func TestPreviewCountsObjectsInManifests(t *testing.T) {
	const namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: apps, labels: {tier: apps}}\n---\n"
	for name, tc := range map[string]struct{ manifests, want string }{
		"a selector":            {governing(everyApp) + apps(30), "gates.yaml: apps/web: spec.targets[0]: selects 30 objects, and the gate governs 30 targets instead of 0" + advice},
		"25 objects":            {governing(everyApp) + apps(25), ""},
		"the same object twice": {governing(everyApp) + apps(20) + apps(20), ""},
		"a name":                {governing("{kind: Kustomization, name: apps-1}") + apps(30), ""},
		"another kind":          {governing(`{kind: HelmRelease, name: "*"}`) + apps(30), ""},
		"namespaces by labels":  {governing(everyTeam) + namespace + apps(30), "gates.yaml: apps/web: spec.targets[0]: selects 30 objects, and the gate governs 30 targets instead of 0" + advice},
		"other namespaces":      {governing(everyTeam) + apps(30), ""},
	} {
		if _, warnings := opens(t, manifests(t, tc.manifests)); warnings != tc.want {
			t.Errorf("%s: %q, want %q", name, warnings, tc.want)
		}
	}
}

func TestDiffComparesNumberOfTargets(t *testing.T) {
	old := governing("{kind: Kustomization, name: apps-1}")
	counts := func(total int64) func(*v1alpha1.Gate) {
		return func(g *v1alpha1.Gate) {
			g.Spec.Targets = []v1alpha1.TargetReference{{Kind: "Kustomization", Name: "apps-1"}}
			g.Status.Targets = &v1alpha1.TargetStatus{TargetCounts: v1alpha1.TargetCounts{Total: total}}
		}
	}
	var scope verdict.Scope
	applied := func(total int64, manifest string) (before, after *preview.Set) {
		before = preview.FromCluster([]*v1alpha1.Gate{known("web", counts(total))}, nil)
		after = before.Applied(manifests(t, manifest))
		after.SetScope(scope)
		if refs := after.NewTargets(before); len(refs) > 0 {
			for i := range 40 {
				obj := &unstructured.Unstructured{}
				obj.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
				obj.SetKind(refs[0].Kind)
				obj.SetNamespace(strings.Replace(refs[0].Namespace, "*", "elsewhere", 1))
				obj.SetName(fmt.Sprintf("apps-%d", i))
				after.AddTargets(obj)
			}
		}
		return before, after
	}
	everywhere := `{kind: Kustomization, name: "*", namespace: "*"}`
	const holds = "spec.targets[0]: it holds the Kustomization from which Flux applies the cluster: while the gate is closed, no commit arrives, not even one that opens it. " +
		"Select by a label that object flux-system does not have"
	inReach, inReachOne := applied(12, governing(everywhere))
	scope.Reaches = func(from, to string) bool { return from == to }
	outOfReach, outOfReachOne := applied(12, governing(everywhere)+apps(3))
	two := func(before, after *preview.Set) []*preview.Set { return []*preview.Set{before, after} }
	for name, tc := range map[string]struct {
		sets []*preview.Set
		want string
	}{
		"manifests":                  {two(manifests(t, old, apps(30)), manifests(t, governing(everyApp), apps(30))), "spec.targets[0]: selects 30 objects, and the gate governs 30 targets instead of 1" + advice},
		"manifests with new objects": {two(manifests(t, governing(everyApp), apps(3)), manifests(t, governing(everyApp), apps(30))), ""},
		"a new gate":                 {two(manifests(t), manifests(t, governing(everyApp), apps(30))), "spec.targets[0]: selects 30 objects, and the gate governs 30 targets instead of 0" + advice},
		"a cluster":                  {two(applied(12, governing(everyApp))), "spec.targets[0]: selects 40 objects, and the gate governs 40 targets instead of 12" + advice},
		"a cluster and manifests":    {two(applied(30, governing(everyApp)+apps(70))), "spec.targets[0]: selects 70 objects, and the gate governs 70 targets instead of 30" + advice},
		"all namespaces":             {two(inReach, inReachOne), holds + "spec.targets[0]: selects 40 objects, and the gate governs 40 targets instead of 12" + advice},
		"namespaces out of reach":    {two(outOfReach, outOfReachOne), ""},
		"not many more":              {two(applied(30, governing(everyApp))), ""},
		"the same targets":           {two(applied(1, old)), ""},
		"mode Audit":                 {two(applied(1, strings.Replace(governing(everyApp), "spec:\n", "spec:\n  mode: Audit\n", 1))), ""},
	} {
		_, warnings, err := preview.Diff(tc.sets[0], tc.sets[1], day)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, doubt := range warnings {
			if strings.HasPrefix(doubt.Field, "spec.targets") {
				got += doubt.Field + ": " + doubt.Cause
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
