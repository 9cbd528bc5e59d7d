// Package harness starts the real parts that tests and the demo need: etcd and
// kube-apiserver, controllers as processes of their own, and artifacts for them.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// Root returns the root folder of the repository.
func Root() string {
	_, file, _, ok := runtime.Caller(0)
	if !ok {
		panic("no caller information")
	}
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Tools returns the folder with what tests/tools/build.sh has built.
func Tools() string { return filepath.Join(Root(), ".cache", "tools", "current") }

// ControlPlane is a running etcd and kube-apiserver.
type ControlPlane struct {
	// Config and Client have all permissions.
	Config *rest.Config
	Client client.WithWatch
	// Kubeconfig is the path of a file with the same permissions.
	Kubeconfig string

	env       *envtest.Environment
	dir       string
	ready     *discovery.DiscoveryClient
	restarted restarted
}

// CRDs are the folders with the definitions of the objects that Gates govern.
// They are named as their projects.
var CRDs = []string{
	"kustomize-controller", "source-controller", "helm-controller",
	"image-reflector-controller", "image-automation-controller",
	"cert-manager", "cluster-api",
}

// Lock is the definition of GateLocks alone, without the policies of config/lock.
const Lock = "gating-controller/lock"

// CRDPath returns where the definitions of one of CRDs are, or of Lock.
func CRDPath(project string) string {
	if project == Lock {
		return filepath.Join(Root(), "config", "lock", "crd.yaml")
	}
	return filepath.Join(Tools(), "crds", project)
}

// StartControlPlane starts etcd and kube-apiserver with the definition of Gates
// and those in the folders named by projects.
func StartControlPlane(projects ...string) (*ControlPlane, error) {
	bin := filepath.Join(Tools(), "bin")
	if _, err := os.Stat(bin); err != nil {
		return nil, fmt.Errorf("the tools are not built, run make tools: %w", err)
	}
	paths := []string{filepath.Join(Root(), "config", "crd", "bases")}
	for _, project := range projects {
		paths = append(paths, CRDPath(project))
	}
	dir, err := os.MkdirTemp("", "gating-")
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{dir: dir, restarted: restarted{}, env: &envtest.Environment{
		BinaryAssetsDirectory: bin, CRDDirectoryPaths: paths, ErrorIfCRDPathMissing: true,
	}}
	if c.Config, err = c.env.Start(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	// Tests are many clients in one.
	c.Config.QPS, c.Config.Burst = 500, 1000
	if err := c.connect(); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *ControlPlane) connect() error {
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	if c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if c.ready, err = discovery.NewDiscoveryClientForConfig(c.Config); err != nil {
		return err
	}
	c.Kubeconfig = filepath.Join(c.dir, "kubeconfig")
	return os.WriteFile(c.Kubeconfig, c.env.KubeConfig, 0o600)
}

// KubeconfigFor writes a kubeconfig for another user and returns its path. What
// the user may do is what RBAC says.
func (c *ControlPlane) KubeconfigFor(user string, groups ...string) (string, error) {
	added, err := c.env.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		return "", err
	}
	content, err := added.KubeConfig()
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, strings.ReplaceAll(user, ":", "-")+".kubeconfig")
	return path, os.WriteFile(path, content, 0o600)
}

// PauseAPIServer stops the kube-apiserver in the middle of what it does, as if it were
// cut off: connections stay, and nobody answers. It goes on after the function that
// is returned.
func (c *ControlPlane) PauseAPIServer() (func() error, error) {
	address, err := url.Parse(c.Config.Host)
	if err != nil {
		return nil, err
	}
	pid, err := processWith("--secure-port=" + address.Port())
	if err != nil {
		return nil, err
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	resume := func() error { return syscall.Kill(pid, syscall.SIGCONT) }
	return resume, Eventually(context.Background(), readyTimeout, "the kube-apiserver is stopped", func() error {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err == nil && !strings.Contains(string(status), "\nState:\tT") {
			err = errors.New("it runs")
		}
		return err
	})
}

// processWith returns the process of this user that has an argument.
func processWith(argument string) (int, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, path := range paths {
		command, _ := os.ReadFile(path) //nolint:gosec // processes come and go
		if slices.Contains(strings.Split(string(command), "\x00"), argument) {
			return strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return 0, fmt.Errorf("no process has %s", argument)
}

// Kubectl runs kubectl with all permissions and returns what it printed.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(Tools(), "bin", "kubectl"), args...) //nolint:gosec // the arguments are those of tests
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Dir is a folder for files that are gone after Stop.
func (c *ControlPlane) Dir() string { return c.dir }

// Stop ends the processes and removes their files. A kube-apiserver without etcd would not
// end in order, whoever started them.
func (c *ControlPlane) Stop() error {
	return errors.Join(c.restarted["kube-apiserver"].Stop(), c.env.Stop(), c.restarted["etcd"].Stop(), os.RemoveAll(c.dir))
}

// Scheme returns the scheme of the types that tests use; targets are
// unstructured.
func Scheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}
