package shards

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// rendered returns the output of kustomize for config/default with some components, one document each.
func rendered(components ...string) ([]string, error) {
	dir, err := os.MkdirTemp(cluster.Dir(), "")
	if err != nil {
		return nil, err
	}
	if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))); err != nil {
		return nil, err
	}
	text := "resources: [config/default, config/webhooks]\ncomponents: [" + strings.Join(components, ", ") + "]\n"
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	out, err := harness.Kustomize(dir)
	return strings.Split(out, "\n---\n"), err
}

// ofKind returns the objects of a kind among documents.
func ofKind[T any](documents []string, kind string) ([]T, error) {
	var found []T
	for _, document := range documents {
		var of metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &of); err != nil {
			return nil, err
		}
		if of.Kind != kind {
			continue
		}
		var obj T
		if err := yaml.Unmarshal([]byte(document), &obj); err != nil {
			return nil, err
		}
		found = append(found, obj)
	}
	return found, nil
}

func deployments(components ...string) ([]appsv1.Deployment, error) {
	documents, err := rendered(components...)
	if err != nil {
		return nil, err
	}
	return ofKind[appsv1.Deployment](documents, "Deployment")
}

func TestEachGateHasOneShard(t *testing.T) {
	for _, components := range [][]string{{"config/sharding"}, {"config/sharding", "config/flagger"}, {"config/flagger", "config/sharding"}, {"config/sharding", "config/calendar-feed"}, {"config/sharding", "config/ui"}} {
		all, err := deployments(components...)
		if err != nil || len(all) != 2 {
			t.Fatalf("%d deployments, %v", len(all), err)
		}
		for value, want := range map[string]string{"": "", "shard1": "-shard1", "shard2": "", "shard": ""} {
			var of labels.Set
			if value != "" {
				of = labels.Set{key: value}
			}
			var has []string
			for _, d := range all {
				selector, err := labels.Parse(selectorOf(&d))
				if err != nil {
					t.Fatal(err)
				}
				if selector.Matches(of) {
					has = append(has, d.Name)
				}
			}
			if len(has) != 1 || has[0] != "gating-controller"+want {
				t.Errorf("%v: the gates with key %q belong to %v", components, value, has)
			}
		}
	}
}

// Only allowed clients can reach the Pods of shards, webhooks reach all of them, and the Pods of each Deployment are separate.
func TestShardPodsAreSelectedByPolicies(t *testing.T) {
	documents, err := rendered("config/sharding", "config/flagger", "config/metrics")
	if err != nil {
		t.Fatal(err)
	}
	deployments, err := ofKind[appsv1.Deployment](documents, "Deployment")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := ofKind[networkingv1.NetworkPolicy](documents, "NetworkPolicy")
	if err != nil || len(policies) < 5 {
		t.Fatalf("%d policies, %v", len(policies), err)
	}
	services, err := ofKind[corev1.Service](documents, "Service")
	if err != nil || len(services) != 2 {
		t.Fatalf("%d services, %v", len(services), err)
	}
	matches := func(selector *metav1.LabelSelector, d appsv1.Deployment) bool {
		s, err := metav1.LabelSelectorAsSelector(selector)
		return err == nil && s.Matches(labels.Set(d.Spec.Template.Labels))
	}
	for i, d := range deployments {
		for _, p := range policies {
			if !matches(&p.Spec.PodSelector, d) {
				t.Errorf("%s is not selected by %s", d.Name, p.Name)
			}
		}
		for _, s := range services {
			want := s.Name == "gating-webhooks" || d.Name == "gating-controller"
			if matches(&metav1.LabelSelector{MatchLabels: s.Spec.Selector}, d) != want {
				t.Errorf("service %s has %s: %t", s.Name, d.Name, !want)
			}
		}
		for j, other := range deployments {
			if matches(d.Spec.Selector, other) != (i == j) {
				t.Errorf("%s selects the Pods of %s", d.Name, other.Name)
			}
		}
		if d.Spec.Template.Spec.ServiceAccountName != "gating-controller" || d.Namespace != harness.RuntimeNamespace {
			t.Errorf("%s/%s has the service account %s", d.Namespace, d.Name, d.Spec.Template.Spec.ServiceAccountName)
		}
	}
}
