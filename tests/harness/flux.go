package harness

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// RuntimeNamespace is the namespace of the controllers.
const RuntimeNamespace = "gating-system"

// quick has flags that make Flux controllers react quickly and predictably.
var quick = []string{
	"--metrics-addr=0", "--interval-jitter-percentage=0", "--requeue-dependency=1s",
	"--min-retry-delay=200ms", "--max-retry-delay=2s", "--kube-api-qps=1000", "--kube-api-burst=2000",
}

// StartKustomizeController starts kustomize-controller. It fetches artifacts from ExternalArtifacts, see ArtifactServer, and from
// source-controller.
func (c *ControlPlane) StartKustomizeController(ctx context.Context) (*Process, error) {
	health := FreeAddress()
	return c.run(ctx, tool("kustomize-controller"), health, c.fluxEnv(),
		append(quick, "--health-addr="+health, "--feature-gates=ExternalArtifact=true")...)
}

// StartSourceController starts source-controller.
func (c *ControlPlane) StartSourceController(ctx context.Context) (*Process, error) {
	health := FreeAddress()
	storage := FreeAddress()
	data := filepath.Join(c.dir, "source-controller")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	return c.run(ctx, tool("source-controller"), health, c.fluxEnv(),
		append(quick, "--health-addr="+health, "--storage-path="+data, "--storage-addr="+storage, "--storage-adv-addr="+storage)...)
}

// fluxEnv returns an environment that keeps the files of a controller in the folder of the control plane.
func (c *ControlPlane) fluxEnv() []string {
	return append([]string{"KUBECONFIG=" + c.Kubeconfig, "HOME=" + c.dir, "TMPDIR=" + c.dir, "RUNTIME_NAMESPACE=" + RuntimeNamespace}, lessGarbageCollection()...)
}

// Install builds the gating-controller from this tree and applies config/default without its Deployment, because the tests run the process.
func (c *ControlPlane) Install(ctx context.Context) error {
	if err := c.build(ctx); err != nil {
		return err
	}
	rendered, err := Kustomize(filepath.Join(Root(), "config", "default"))
	if err != nil {
		return err
	}
	manifest := filepath.Join(c.dir, "default.yaml")
	if err := os.WriteFile(manifest, []byte(rendered), 0o600); err != nil {
		return err
	}
	if _, err := c.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f", manifest); err != nil {
		return err
	}
	_, err = c.Kubectl(ctx, "-n", RuntimeNamespace, "delete", "deployment", "gating-controller")
	return err
}

// build builds the gating-controller in bin, where it is linked only after a change, and copies it to ControllerBinary. It locks bin,
// because test packages may build concurrently.
func (c *ControlPlane) build(ctx context.Context) error {
	bin := filepath.Join(Root(), "bin")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return err
	}
	lock, err := os.Create(filepath.Join(bin, ".lock")) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing is written
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	program := filepath.Join(bin, "gating-controller")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".") //nolint:gosec // a path of ours
	build.Dir = Root()
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building the gating-controller: %w: %s", err, out)
	}
	content, err := os.ReadFile(program) //nolint:gosec // a path of ours
	if err != nil {
		return err
	}
	return os.WriteFile(c.ControllerBinary(), content, 0o700) //nolint:gosec // it is run
}

// InstallComponent installs an optional component, named by its folder in config.
func (c *ControlPlane) InstallComponent(ctx context.Context, name string) error {
	_, err := c.Kubectl(ctx, "apply", "-k", filepath.Join(Root(), "config", name))
	return err
}

// RemoveComponent removes a component that InstallComponent has installed.
func (c *ControlPlane) RemoveComponent(ctx context.Context, name string) error {
	_, err := c.Kubectl(ctx, "delete", "-k", filepath.Join(Root(), "config", name))
	return err
}

// ControllerBinary returns the path of the gating-controller that Install has built.
func (c *ControlPlane) ControllerBinary() string { return filepath.Join(c.dir, "gating-controller") }

// StartGatingController starts the controller as its service account, so that it has exactly the permissions of config/rbac. Call Install
// first. Several controllers with --enable-leader-election are replicas.
func (c *ControlPlane) StartGatingController(ctx context.Context, args ...string) (*Process, error) {
	kubeconfig, err := c.KubeconfigFor(controllerUser, controllerGroups...)
	if err != nil {
		return nil, err
	}
	health := FreeAddress()
	return c.startGatingController(ctx, []string{"KUBECONFIG=" + kubeconfig}, health, args...)
}

// controllerUser is the service account of the controller, controllerGroups are its groups.
const controllerUser = "system:serviceaccount:" + RuntimeNamespace + ":gating-controller"

var controllerGroups = []string{"system:serviceaccounts", "system:authenticated"}

// StartControllerProxy starts a FaultProxy for the controller.
func (c *ControlPlane) StartControllerProxy(ctx context.Context, name string, seed uint64) (*FaultProxy, error) {
	return c.StartFaultProxy(ctx, name, seed, controllerUser, controllerGroups...)
}

// StartGatingControllerThrough starts the controller behind a proxy. It does not wait until the controller is ready, because the proxy may
// prevent that. The controller panics if it changes objects in its cache.
func (c *ControlPlane) StartGatingControllerThrough(ctx context.Context, proxy *FaultProxy, args ...string) (*Process, error) {
	env := []string{"KUBECONFIG=" + proxy.Kubeconfig, "KUBE_CACHE_MUTATION_DETECTOR=true"}
	return c.startGatingController(ctx, env, "", append([]string{"--health-addr=0"}, args...)...)
}

// startGatingController starts the controller. If health is set, it waits until the controller is ready.
func (c *ControlPlane) startGatingController(ctx context.Context, env []string, health string, args ...string) (*Process, error) {
	webhooks := FreeAddress()
	env = append(env, "RUNTIME_NAMESPACE="+RuntimeNamespace)
	args = append([]string{"--metrics-addr=0", "--receiver-addr=" + webhooks, "--interval-jitter-percentage=0"}, args...)
	if health != "" {
		args = append([]string{"--health-addr=" + health}, args...)
	}
	p, err := c.run(ctx, c.ControllerBinary(), health, env, args...)
	if err != nil {
		return nil, err
	}
	p.Webhooks = "http://" + webhooks
	return p, nil
}
