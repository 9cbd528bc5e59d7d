package shards

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"

	appsv1 "k8s.io/api/apps/v1"
)

func TestScalingPageCommandsWork(t *testing.T) {
	w := newWorld(t)
	w.Namespace = "flux-system"
	cluster.Documented(t, w.Namespace)
	g := w.gate(rest, "production", v1alpha1.StateClosed)
	w.has(rest, g)
	output := docs.Start(t, docs.Reader{Kubeconfig: cluster.Kubeconfig}).Follow(markdown.BlocksOf(t, "docs/operate/scaling.md")...)
	w.has(one, g)
	// The width of a column depends on the Gates of other tests.
	for _, want := range []string{rest.lease(), one.lease(), "(?m)^flux-system +production +shard1 +1 +1 "} {
		if !regexp.MustCompile(want).MatchString(output) {
			t.Errorf("want %q in %s", want, output)
		}
	}
	deployments := &appsv1.DeploymentList{}
	w.Must(w.Client.List(w.Context(), deployments, client.InNamespace(harness.RuntimeNamespace)))
	for _, value := range []string{"shard1", "shard2", "shard3"} {
		var has []string
		for _, d := range deployments.Items {
			if selector, err := labels.Parse(selectorOf(&d)); err == nil && selector.Matches(labels.Set{key: value}) {
				has = append(has, d.Name)
			}
		}
		want := map[string]string{"shard1": "-shard1", "shard2": "-shard2"}[value]
		if len(has) != 1 || has[0] != "gating-controller"+want {
			t.Errorf("the gates with key %s belong to %v", value, has)
		}
	}
}
