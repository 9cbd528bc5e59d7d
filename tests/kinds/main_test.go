// Package kinds tests --suspend-kinds with the CronJobs of a real kube-controller-manager, with kinds of various definitions, and with the
// policies that kubectl gate kinds generates.
package kinds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// added are the kinds in the flag of the controller. The tests define the kinds of example.org.
var added = []string{
	"batch/CronJob", "apps/Deployment=spec.paused", "flagger.app/Canary", "batch/Job=spec.completionMode", "example.org/Widget", "example.org/Gizmo=spec.paused",
	"example.org/Later", "example.org/Bare", "example.org/Text", "example.org/Open", "example.org/Global", "example.org/Missing", "other.example.org/Absent",
}

// The parts that all tests share.
var (
	cluster *harness.ControlPlane
	gating  *harness.Process
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, "kustomize-controller"))
}

func setup(ctx context.Context) (stop func() error, err error) {
	var running []*harness.Process
	stop = func() error {
		for _, process := range append(running, gating) {
			if process != nil {
				err = errors.Join(err, process.Stop())
			}
		}
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program(), "./cmd/kubectl-gate")
	build.Dir, build.Env = harness.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return stop, fmt.Errorf("building kubectl-gate: %w: %s", err, out)
	}
	if err := errors.Join(cluster.Install(ctx), cluster.InstallComponent(ctx, "lock"), cluster.InstallComponent(ctx, "policies")); err != nil {
		return stop, err
	}
	for _, args := range [][]string{
		append([]string{"--offline"}, added...),
		{"batch/CronJob", "apps/Deployment=spec.paused", "--with=lock,policies"},
	} {
		if err := applyKinds(ctx, args...); err != nil {
			return stop, err
		}
	}
	manager, err := cluster.StartControllerManager(ctx, "cronjob-controller")
	if err != nil {
		return stop, err
	}
	running = append(running, manager)
	kinds := "--suspend-kinds=" + strings.Join(added, ",")
	gating, err = cluster.StartGatingController(ctx, kinds, kinds) // a repeated kind counts once
	return stop, err
}

// program is the path of the plugin.
func program() string { return filepath.Join(cluster.Dir(), "kubectl-gate") }

// plugin runs kubectl gate and returns its standard output, its standard error and its exit code.
func plugin(ctx context.Context, kubeconfig string, args ...string) (out, errOut string, code int) {
	cmd := exec.CommandContext(ctx, program(), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "HOME="+cluster.Dir(), "TZ=UTC")
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return "", err.Error(), -1
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// applyKinds applies the output of kubectl gate kinds.
func applyKinds(ctx context.Context, args ...string) error {
	out, errOut, code := plugin(ctx, cluster.Kubeconfig, append([]string{"kinds"}, args...)...)
	if code != 0 {
		return fmt.Errorf("kubectl gate kinds: exit code %d: %s", code, errOut)
	}
	return apply(ctx, out)
}

// apply applies manifests with kubectl.
func apply(ctx context.Context, manifests string) error {
	file, err := os.CreateTemp(cluster.Dir(), "*.yaml")
	if err != nil {
		return err
	}
	if _, err = file.WriteString(manifests); err == nil {
		err = file.Close()
	}
	if err != nil {
		return err
	}
	out, err := cluster.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", file.Name())
	if err == nil && strings.Contains(out, "Warning") {
		err = errors.New(out)
	}
	return err
}

// world is a namespace in which Gates hold objects of added kinds.
type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{harness.NewWorld(t, cluster)}
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// object returns an object of a kind with a spec in YAML.
func (w *world) object(apiVersion, kind, name, spec string) *unstructured.Unstructured {
	w.Helper()
	obj := harness.Object(apiVersion, kind, w.Key(name))
	fields := map[string]any{}
	w.Must(yaml.Unmarshal([]byte(spec), &fields))
	obj.Object["spec"] = fields
	return obj
}

// field waits until a boolean field of the spec of an object has a value.
func (w *world) field(obj *unstructured.Unstructured, name string, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("spec.%s of %s %s is %t", name, obj.GetKind(), obj.GetName(), want), func() error {
		if err := w.TryRead(obj); err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedBool(obj.Object, "spec", name); got != want || (harness.HeldBy(obj) != "") != want {
			return fmt.Errorf("the field is %t, held by %q", got, harness.HeldBy(obj))
		}
		return nil
	})
}

// fails waits until a Gate reports a failure of an object with a reason and a message.
func (w *world) fails(g *v1alpha1.Gate, reason, message string) {
	w.Helper()
	w.Eventually("gate "+g.Name+" reports the failure", func() error {
		w.Read(g)
		if len(g.Status.TargetFailures()) != 1 || g.Status.TargetFailures()[0].Reason != reason || g.Status.TargetFailures()[0].Message != message {
			return fmt.Errorf("the failures are %+v", g.Status.TargetFailures())
		}
		return nil
	})
}

// open opens a Gate for an hour.
func (w *world) open(g *v1alpha1.Gate) {
	w.Helper()
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, metav1.Now().UTC().Format("2006-01-02T15:04:05.000Z")+"/1h")
}
