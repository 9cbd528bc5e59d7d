package kinds

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

func TestControllerDoesNotStartWithInvalidKind(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"batch/CronJob,CronJob":                           `"CronJob": must be group/Kind or group/Kind=spec.field, such as batch/CronJob`,
		"infra.example.org/HelmRelease":                   `"infra.example.org/HelmRelease": kind HelmRelease of helm.toolkit.fluxcd.io is built in, and kinds must have different names`,
		"a.b/Widget,batch/CronJob,a.b/Widget=spec.paused": `"a.b/Widget=spec.paused": kind Widget of a.b is already configured with field spec.suspend; only one field per kind is allowed`,
		"a.b/C=spec.a.b":                                  `"a.b/C=spec.a.b": the field must be in spec, such as spec.paused, not "spec.a.b"`,
	} {
		t.Run(value, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), cluster.ControllerBinary(), "--suspend-kinds="+value, "--metrics-addr=0", "--health-addr=0")
			cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig)
			out, err := cmd.CombinedOutput()
			if text := strings.TrimSpace(string(out)); err == nil || text != "gating-controller: --suspend-kinds: "+want {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

func TestCommandPrintsNeededObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct {
		args      []string
		has, not  string
		complaint string
	}{
		"for the installed components": {[]string{"batch/CronJob"}, "gating-controller-kinds gate-hold-kinds-suspend gate-delete-kinds-suspend gate-overlay-verb-kinds-suspend gate-target-verb-kinds", "cronjobs/status", ""},
		"only the role":                {[]string{"batch/CronJob", "--with=role"}, "gating-controller-kinds", "gate-hold", ""},
		"without a cluster":            {[]string{"example.org/Gizmo", "--offline"}, "gizmos/status", "gate-hold", ""},
		"a kind that is not installed": {[]string{"example.org/Nothing"}, "", "", "error: this cluster has no kind Nothing of example.org: install it first, or use --offline\n"},
		"no boolean field": {[]string{"batch/CronJob=spec.schedule"}, "", "",
			"error: spec.schedule of kind CronJob of batch has type string, but must be a boolean field: name the field that suspends it, as in --suspend-kinds=batch/CronJob=spec.paused\n"},
		"not namespaced":        {[]string{"storage.k8s.io/StorageClass=spec.a"}, "", "", "error: kind StorageClass of storage.k8s.io is not namespaced: gates hold only namespaced objects\n"},
		"a part without a kind": {[]string{"batch/CronJob", "--with=all"}, "", "", "error: --with=all: use role, lock or policies\n"},
		"a bad kind":            {[]string{"batch/cronjobs"}, "", "", "error: \"batch/cronjobs\": the kind must be written as in manifests, such as CronJob, not \"cronjobs\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, errOut, code := plugin(t.Context(), cluster.Kubeconfig, append([]string{"kinds"}, tc.args...)...)
			if wantCode := map[bool]int{true: 2}[tc.complaint != ""]; code != wantCode || errOut != tc.complaint || tc.complaint != "" && out != "" {
				t.Fatalf("exit code %d: %s%s", code, errOut, out)
			}
			for want := range strings.FieldsSeq(tc.has) {
				if !strings.Contains(out, want) {
					t.Errorf("the output lacks %s\n%s", want, out)
				}
			}
			if tc.not != "" && strings.Contains(out, tc.not) {
				t.Errorf("the output has %s\n%s", tc.not, out)
			}
		})
	}
	grace := w.Person("grace").Kubeconfig
	_, errOut, code := plugin(t.Context(), grace, "kinds", "batch/CronJob")
	if want := "error: you may not get validatingadmissionpolicies, which show whether the cluster has the lock and the policies: choose the parts with --with\n"; code != 2 || errOut != want {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// kubectl gate kinds generates the policy.
func TestHoldOfCronJobsNeedsPatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edith := w.Person("edith")
	for _, args := range [][]string{
		{"create", "rolebinding", "edith-edits", "--clusterrole=gate-editor", "--user=edith"},
		{"create", "role", "holds", "--verb=patch", "--resource=deployments.apps"},
		{"create", "rolebinding", "edith-holds", "--role=holds", "--user=edith"},
	} {
		_, err := w.Kubectl(w.Context(), append([]string{"-n", w.Namespace}, args...)...)
		w.Must(err)
	}
	gate := func(kind string) string {
		return `{"apiVersion":"gating.toolkit.fluxcd.io/v1alpha1","kind":"Gate","metadata":{"name":"mine","namespace":"` + w.Namespace + `"},"spec":{"default":"closed","targets":[{"kind":"` + kind + `","name":"*"}]}}`
	}
	create := func(kind string) error {
		file := w.TempDir() + "/gate.json"
		w.Must(os.WriteFile(file, []byte(gate(kind)), 0o600))
		_, err := edith.Kubectl(w.Context(), w.Namespace, "create", "-f", file)
		return err
	}
	want := "user edith may not hold CronJobs in namespace " + w.Namespace + " by gate " + w.Namespace + "/mine: that needs the verb patch on cronjobs.batch"
	w.Eventually("the policy is in force", func() error {
		err := create("CronJob")
		if err == nil {
			w.Must(w.Client.Delete(w.Context(), w.ReadGate("mine")))
			return os.ErrPermission
		}
		if !strings.Contains(err.Error(), want) {
			return harness.Permanent(err)
		}
		return nil
	})
	w.Must(create("Deployment"))
}
