package suspendkinds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/config"
	"github.com/fluxcd/gating-controller/internal/suspendkinds"
	"github.com/fluxcd/gating-controller/internal/target"
)

// resources are those of kinds, as they are called in most cases.
func resources(t *testing.T, values ...string) []suspendkinds.Resource {
	t.Helper()
	parsed, err := target.ParseKinds(values)
	if err != nil {
		t.Fatal(err)
	}
	all := make([]suspendkinds.Resource, len(parsed))
	for i, k := range parsed {
		all[i] = suspendkinds.Guess(k)
	}
	return all
}

// manifests reads the documents of a text, by kind and name. Their content is as Go prints it, without lines that wrap.
func manifests(t *testing.T, text []byte, err error) map[string]string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i, document := range strings.Split("\n"+string(text), "\n---\n") {
		var o map[string]any
		if err := yaml.Unmarshal([]byte(document), &o); err != nil {
			t.Fatal(err)
		}
		if metadata, _ := o["metadata"].(map[string]any); i > 0 {
			all[fmt.Sprintf("%v %v", o["kind"], metadata["name"])] = fmt.Sprint(o)
		}
	}
	return all
}

func names(all map[string]string) []string {
	var found []string
	for name := range all {
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}

// The component of config is the output of the command for CronJobs.
func TestRoleMatchesComponent(t *testing.T) {
	text, err := suspendkinds.Role(resources(t, "batch/CronJob"))
	got := manifests(t, text, err)
	for _, file := range []string{"role.yaml", "role_binding.yaml"} {
		raw, err := config.Files.ReadFile("suspend-kinds/" + file)
		if err != nil {
			t.Fatal(err)
		}
		want := manifests(t, append([]byte("---\n"), raw...), nil)
		for name, document := range want {
			if got[name] != document {
				t.Errorf("%s: got %s, want %s", name, got[name], document)
			}
		}
	}
}

func TestRoleHasStatusOfKindsWithConditions(t *testing.T) {
	text, err := suspendkinds.Role(resources(t, "flagger.app/Canary", "batch/CronJob"))
	role := manifests(t, text, err)["ClusterRole gating-controller-kinds"]
	for want, has := range map[string]bool{"[canaries]": true, "[canaries/status]": true, "[cronjobs]": true, "cronjobs/status": false} {
		if strings.Contains(role, want) != has {
			t.Errorf("it has %q: %t\n%s", want, !has, role)
		}
	}
}

func TestLockIsGeneratedForEachField(t *testing.T) {
	text, err := suspendkinds.Lock(resources(t, "batch/CronJob", "argoproj.io/Rollout=spec.paused", "example.org/Widget=spec.isPaused", "flagger.app/Canary"))
	got := manifests(t, text, err)
	hold, paused := got["MutatingAdmissionPolicy gate-hold-kinds-suspend"], got["MutatingAdmissionPolicy gate-hold-kinds-paused"]
	for _, name := range []string{"suspend", "paused", "is-paused"} {
		for _, kind := range []string{"MutatingAdmissionPolicy gate-hold-kinds-", "MutatingAdmissionPolicyBinding gate-hold-kinds-",
			"ValidatingAdmissionPolicy gate-delete-kinds-", "ValidatingAdmissionPolicyBinding gate-delete-kinds-", "ValidatingAdmissionPolicy gate-overlay-verb-kinds-"} {
			if got[kind+name] == "" {
				t.Errorf("there is no %s%s: %q", kind, name, names(got))
			}
		}
	}
	for _, want := range []string{"[cronjobs]", "[canaries]", "object.?spec.?suspend", `"f:suspend"`, `path: "/spec/suspend"`, "/fieldsV1/f:spec/f:suspend"} {
		if !strings.Contains(hold, want) {
			t.Errorf("the policy lacks %s\n%s", want, hold)
		}
	}
	for _, want := range []string{"[rollouts]", "object.?spec.?paused", `"f:paused"`, `path: "/spec/paused"`, "/fieldsV1/f:spec/f:paused", "variables.suspended", "gating.toolkit.fluxcd.io~1suspendedBy"} {
		if !strings.Contains(paused, want) {
			t.Errorf("the policy lacks %s\n%s", want, paused)
		}
	}
	for name, document := range got {
		for _, never := range []string{"kustomizations", "spec.?suspend.", "f:suspend", "/spec/suspend"} {
			if strings.Contains(document, never) && (never == "kustomizations" || !strings.HasSuffix(name, "-suspend")) {
				t.Errorf("%s has %s", name, never)
			}
		}
	}
	binding := got["MutatingAdmissionPolicyBinding gate-hold-kinds-paused"]
	if !strings.Contains(binding, "policyName:gate-hold-kinds-paused") || !strings.Contains(binding, "name:closed") {
		t.Errorf("the binding is %s", binding)
	}
}

// Each document that config/lock has comes along, for each field.
func TestLockIsComplete(t *testing.T) {
	text, err := suspendkinds.Lock(resources(t, "batch/CronJob"))
	got, want := manifests(t, text, err), 0
	for _, file := range []string{"hold.yaml", "delete.yaml", "overlay.yaml"} {
		raw, err := config.Files.ReadFile("lock/" + file)
		if err != nil {
			t.Fatal(err)
		}
		want += strings.Count("\n"+string(raw), "\napiVersion:")
	}
	if len(got) != want || want < 4 {
		t.Errorf("got %q, want %d", names(got), want)
	}
}

func TestPolicyOnTargetsHasAddedKinds(t *testing.T) {
	text, err := suspendkinds.Policies(resources(t, "batch/CronJob", "flagger.app/Canary"))
	got := manifests(t, text, err)
	if want := []string{"ValidatingAdmissionPolicy gate-target-verb-kinds", "ValidatingAdmissionPolicyBinding gate-target-verb-kinds"}; !slices.Equal(names(got), want) {
		t.Errorf("got %q", names(got))
	}
	policy := got["ValidatingAdmissionPolicy gate-target-verb-kinds"]
	for _, want := range []string{"['CronJob', 'CronJobs', 'batch']", "['Canary', 'Canaries', 'flagger.app']"} {
		if !strings.Contains(policy, want) {
			t.Errorf("it lacks %s", want)
		}
	}
	if strings.Contains(policy, "Kustomization") {
		t.Error("it knows what is built in")
	}
}

func TestManyKindsNeedMorePolicies(t *testing.T) {
	var many []string
	for i := range 25 {
		many = append(many, fmt.Sprintf("example.org/Widget%d", i))
	}
	text, err := suspendkinds.Policies(resources(t, many...))
	got := manifests(t, text, err)
	if len(got) != 6 || got["ValidatingAdmissionPolicyBinding gate-target-verb-kinds-3"] == "" {
		t.Errorf("got %q", names(got))
	}
	for name, document := range got {
		if n := strings.Count(document, "['Widget"); n > 12 {
			t.Errorf("%s has %d kinds", name, n)
		}
	}
}
