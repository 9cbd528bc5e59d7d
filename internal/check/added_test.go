package check_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/internal/check"
	"github.com/fluxcd/gating-controller/internal/suspendkinds"
	"github.com/fluxcd/gating-controller/internal/target"
)

func TestKindsOfControllerAreReadFromFlag(t *testing.T) {
	for change, want := range map[string][]string{
		"": nil,
		"--enable-leader-election] -> --suspend-kinds=batch/CronJob, \"--suspend-kinds=a.b/C=spec.d,e.f/G\"]": {"batch/CronJob", "a.b/C=spec.d", "e.f/G"},
		"--enable-leader-election] -> --suspend-kinds, batch/CronJob]":                                        {"batch/CronJob"},
		"--enable-leader-election] -> --suspend-kinds]":                                                       nil,
	} {
		if got := deployment(t, change).Kinds; !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", change, got, want)
		}
	}
}

func TestHeldObjectOfRemovedKindIsFound(t *testing.T) {
	job := func(annotations string) *unstructured.Unstructured {
		return object(t, "apiVersion: batch/v1\nkind: CronJob\nmetadata: {namespace: shop, name: backup, annotations: {"+annotations+"}}")
	}
	found := check.Leftovers([]*unstructured.Unstructured{job(""), job("gating.toolkit.fluxcd.io/heldBy: shop/nights")})
	finds(t, found, "error CronJob shop/backup: it is held by gate 'shop/nights', and no controller has its kind in --suspend-kinds any longer")
}

// added adds kinds for one test, and returns their resources.
func added(t *testing.T, values ...string) (resources []suspendkinds.Resource) {
	t.Helper()
	parsed, err := target.ParseKinds(values)
	if err != nil {
		t.Fatal(err)
	}
	target.SetKinds(parsed...)
	t.Cleanup(func() { target.SetKinds() })
	for _, k := range parsed {
		resources = append(resources, suspendkinds.Guess(k))
	}
	return resources
}

func TestKindMissingFromPoliciesIsFound(t *testing.T) {
	resources := added(t, "batch/CronJob", "apps/Deployment=spec.paused", "example.org/Absent")
	installedKinds := map[string]string{"CronJob.batch": "cronjobs.batch", "Deployment.apps": "deployments.apps"}
	finds(t, check.Added(nil, installedKinds))
	all := installed(t, "lock", "policies")
	const unlocked, unjudged = ": no policy of the lock covers it", ": the policy on targets does not cover it"
	finds(t, check.Added(all, installedKinds), "warning kind CronJob of batch"+unlocked, "warning kind CronJob of batch"+unjudged,
		"warning kind Deployment of apps"+unlocked, "warning kind Deployment of apps"+unjudged)
	for _, some := range [][]suspendkinds.Resource{resources[:1], resources[1:]} {
		for _, make := range []func([]suspendkinds.Resource) ([]byte, error){suspendkinds.Lock, suspendkinds.Policies} {
			text, err := make(some)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, documents(t, string(text))...)
		}
		if some[0].Kind.Kind == "CronJob" {
			finds(t, check.Added(all, installedKinds), "warning kind Deployment of apps"+unlocked, "warning kind Deployment of apps"+unjudged)
		}
	}
	finds(t, check.Added(all, installedKinds))
	unbound := slices.DeleteFunc(slices.Clone(all), func(u unstructured.Unstructured) bool {
		of, _, _ := unstructured.NestedString(u.Object, "spec", "policyName")
		return of == "gate-hold-kinds-suspend" && u.GetKind() == "MutatingAdmissionPolicyBinding"
	})
	finds(t, check.Added(unbound, installedKinds), "warning kind CronJob of batch"+unlocked)
}

func documents(t *testing.T, text string) (all check.Admission) {
	t.Helper()
	for _, part := range strings.Split(strings.TrimPrefix(text, "---\n"), "\n---\n") {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(part), &fields); err != nil {
			t.Fatal(err)
		}
		all = append(all, unstructured.Unstructured{Object: fields})
	}
	return all
}
