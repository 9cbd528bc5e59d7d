// Package cli runs kubectl-gate as a process on a real API server, with the real controller, kustomize-controller and source-controller.
package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// Parts that all tests share.
var (
	cluster   *harness.ControlPlane
	artifacts *harness.ArtifactServer
	gating    *harness.Process
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (stop func() error, err error) {
	artifacts = harness.StartArtifactServer()
	var running []*harness.Process
	stop = func() error {
		for _, process := range running {
			err = errors.Join(err, process.Stop())
		}
		artifacts.Stop()
		return err
	}
	if err := errors.Join(cluster.Install(ctx), cluster.InstallComponent(ctx, "machines")); err != nil {
		return stop, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program(), "./cmd/kubectl-gate")
	build.Dir, build.Env = harness.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return stop, fmt.Errorf("building kubectl-gate: %w: %s", err, out)
	}
	for _, start := range []func(context.Context) (*harness.Process, error){
		cluster.StartKustomizeController, cluster.StartSourceController,
		func(ctx context.Context) (*harness.Process, error) { return cluster.StartGatingController(ctx) },
	} {
		process, err := start(ctx)
		if err != nil {
			return stop, err
		}
		running = append(running, process)
		gating = process
	}
	return stop, nil
}

// program is the path of the plugin.
func program() string { return filepath.Join(cluster.Dir(), "kubectl-gate") }

// world is a namespace in which a user runs kubectl gate.
type world struct {
	*harness.World
	kubeconfig string
	// receivers is the address at which the controller accepts webhooks.
	receivers string
	// folder is where a reader runs commands. If it is empty, each section has its own folder.
	folder string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := newWorldOn(t, cluster)
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{gating} })
	return w
}

// newWorldOn returns a world on another control plane.
func newWorldOn(t *testing.T, c *harness.ControlPlane) *world {
	t.Helper()
	w := &world{World: harness.NewWorld(t, c)}
	w.kubeconfig = w.inNamespace(c.Kubeconfig)
	return w
}

// as returns the same world for another user.
func (w *world) as(name string, groups ...string) *world {
	w.Helper()
	return &world{World: w.World, kubeconfig: w.inNamespace(w.Person(name, groups...).Kubeconfig)}
}

// inNamespace returns a copy of a kubeconfig with the namespace of the world.
func (w *world) inNamespace(path string) string {
	w.Helper()
	config, err := clientcmd.LoadFromFile(path)
	w.Must(err)
	for _, c := range config.Contexts {
		c.Namespace = w.Namespace
	}
	file := filepath.Join(w.TempDir(), "kubeconfig")
	w.Must(clientcmd.WriteToFile(*config, file))
	return file
}

// output is the printed text and the exit code of a command.
type output struct {
	out, errOut string
	code        int
}

// gate runs kubectl gate with arguments.
func (w *world) gate(args ...string) output {
	w.Helper()
	return w.run(exec.CommandContext(w.Context(), program(), args...))
}

// shell runs a command line.
func (w *world) shell(command string) output {
	w.Helper()
	return w.run(exec.CommandContext(w.Context(), "bash", "-c", command))
}

// run runs a command as a user of the cluster.
func (w *world) run(cmd *exec.Cmd) output {
	w.Helper()
	var out, errOut captured
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "TZ=UTC", "NO_COLOR=", "TERM=xterm", "HOME="+cluster.Dir(),
		"PATH="+cluster.Dir()+":"+filepath.Join(harness.Tools(), "bin")+":"+os.Getenv("PATH"))
	if cmd.Stdout == nil {
		cmd.Stdout, cmd.Stderr = &out, &errOut
	}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.Fatal(err)
	}
	return output{string(out), string(errOut), cmd.ProcessState.ExitCode()}
}

// captured collects the output of a command.
type captured []byte

func (l *captured) Write(p []byte) (int, error) {
	*l = append(*l, p...)
	return len(p), nil
}
