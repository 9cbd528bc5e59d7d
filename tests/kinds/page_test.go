package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/docs"
	"github.com/fluxcd/gating-controller/tests/harness"
	"github.com/fluxcd/gating-controller/tests/markdown"
)

// reader is a user with a separate control plane who follows docs/guides/more-kinds.md.
type reader struct {
	*world
	folder     string
	controller *harness.Process
}

func newReader(t *testing.T) *reader {
	t.Helper()
	c, err := harness.StartControlPlane("kustomize-controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	r := &reader{world: &world{harness.NewWorld(t, c)}, folder: t.TempDir()}
	r.Must(c.Install(t.Context()))
	r.Must(os.CopyFS(filepath.Join(r.folder, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))))
	r.ShowLogs(func() []*harness.Process { return []*harness.Process{r.controller} })
	return r
}

// run runs a command line in the namespace of the world, which is shop on the page.
func (r *reader) run(command string) string {
	r.Helper()
	reader := docs.Reader{Kubeconfig: r.Kubeconfig, Folder: r.folder, Path: []string{cluster.Dir()}, Env: []string{"HOME=" + r.folder}}
	out, err := reader.Bash(r.Context(), strings.ReplaceAll(command, " shop", " "+r.Namespace))
	if err != nil {
		r.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.ReplaceAll(out, r.Namespace, "shop")
}

// start starts the controller with the flag of its Deployment.
func (r *reader) start() {
	r.Helper()
	if r.controller != nil {
		r.Must(r.controller.Stop())
	}
	out, err := r.Kubectl(r.Context(), "-n", harness.RuntimeNamespace, "get", "deployment", "gating-controller", "-o=jsonpath={.spec.template.spec.containers[0].args}")
	r.Must(err)
	r.controller, err = r.StartGatingController(r.Context(), regexp.MustCompile(`--suspend-kinds=[^"]*`).FindAllString(out, -1)...)
	r.Must(err)
	r.Cleanup(func() { _ = r.controller.Stop() })
}

// withFlag sets the kinds in the flag of the Deployment, and restarts the controller with them.
func (r *reader) withFlag(value string) {
	r.Helper()
	deployment := harness.Object("apps/v1", "Deployment", r.Key("gating-controller"))
	deployment.SetNamespace(harness.RuntimeNamespace)
	r.Read(deployment)
	containers, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	container := containers[0].(map[string]any)
	var args []any
	for _, arg := range container["args"].([]any) {
		if !strings.HasPrefix(fmt.Sprint(arg), "--suspend-kinds") {
			args = append(args, arg)
		}
	}
	if value != "" {
		args = append(args, "--suspend-kinds="+value)
	}
	container["args"] = args
	r.Must(unstructured.SetNestedSlice(deployment.Object, containers, "spec", "template", "spec", "containers"))
	r.Must(r.Client.Update(r.Context(), deployment))
	r.start()
}

// The test follows the page in order, and compares the output of its commands. Then it removes the kind from the flag.
func TestKindsPage(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	backup := r.cronJob("backup", "")
	r.Create(backup)
	for _, block := range markdown.BlocksOf(t, "docs/guides/more-kinds.md") {
		switch text := block.Text; block.Language {
		case "yaml":
			name := regexp.MustCompile(`^# (\S+)\n`).FindStringSubmatch(text)[1]
			r.Must(os.WriteFile(filepath.Join(r.folder, name), []byte(strings.ReplaceAll(text, ": shop", ": "+r.Namespace)), 0o600))
		case "sh":
			r.run(text)
			if strings.Contains(text, "apply --server-side -k") {
				r.start()
			}
			if strings.Contains(text, "gate.yaml") {
				r.field(backup, "suspend", true)
				r.Decided(r.ReadGate("nights"))
			}
		case "console":
			for _, c := range docs.Commands(text) {
				if got := r.run(c.Text); docs.Stable(got) != docs.Stable(c.Prints) {
					t.Errorf("%s\nprints\n%s\nbut the page shows\n%s", c.Text, got, c.Prints)
				}
			}
		}
	}
	r.seesWithoutDeployments()
	r.takesOut(backup)
}

// seesWithoutDeployments runs commands as a user who may read CronJobs and Gates, but no Deployments.
func (r *reader) seesWithoutDeployments() {
	r.Helper()
	_, err := r.Kubectl(r.Context(), "create", "clusterrole", "sees", "--verb=get,list", "--resource=cronjobs.batch,gates.gating.toolkit.fluxcd.io")
	r.Must(err)
	_, err = r.Kubectl(r.Context(), "create", "clusterrolebinding", "sees", "--clusterrole=sees", "--user=grace")
	r.Must(err)
	grace := r.Person("grace").Kubeconfig
	_, errOut, code := plugin(r.Context(), grace, "why", "cronjob/backup", "-n", r.Namespace)
	if code != 2 || !strings.Contains(errOut, "if the controller has more kinds in its flag --suspend-kinds, which you cannot see, set the flag here as well") {
		r.Errorf("exit code %d: %s", code, errOut)
	}
	out, errOut, code := plugin(r.Context(), grace, "why", "cronjob/backup", "-n", r.Namespace, "--suspend-kinds=batch/CronJob")
	if code != 0 || !strings.Contains(out, "is held by gate nights") {
		r.Errorf("exit code %d: %s%s", code, out, errOut)
	}
	_, errOut, code = plugin(r.Context(), grace, "why", "cronjob/backup", "-n", r.Namespace, "--suspend-kinds=CronJob")
	if code != 2 || !strings.Contains(errOut, `error: --suspend-kinds: "CronJob": must be group/Kind`) {
		r.Errorf("exit code %d: %s", code, errOut)
	}
}

// takesOut removes the kind from the flag while an object of the kind is held.
func (r *reader) takesOut(backup *unstructured.Unstructured) {
	r.Helper()
	leftover := "error    CronJob " + r.Namespace + "/backup: it is held by gate '" + r.Namespace + "/nights', and no controller has its kind in --suspend-kinds any longer"
	check := func(want bool) {
		r.Helper()
		out, errOut, _ := plugin(r.Context(), r.Kubeconfig, "check")
		if strings.Contains(out, leftover) != want || strings.Contains(out, "no policy of the lock covers it") || strings.Contains(out, "the policy on targets does not cover it") {
			r.Errorf("check prints\n%s%s", out, errOut)
		}
	}
	check(false)
	r.withFlag("")
	g := r.ReadGate("nights")
	r.fails(g, v1alpha1.UnsupportedKindReason, "kind CronJob is not supported: if a boolean field suspends its objects, start the controller with --suspend-kinds=GROUP/CronJob")
	check(true)
	version := backup.GetResourceVersion()
	r.open(g)
	r.Opened("nights", metav1.ConditionTrue)
	r.Decided(g)
	if r.Read(backup); backup.GetResourceVersion() != version || !harness.Suspended(backup) {
		r.Errorf("the object was written: %v", backup.Object)
	}
	r.withFlag("batch/CronJob")
	r.field(backup, "suspend", false)
	check(false)
}
