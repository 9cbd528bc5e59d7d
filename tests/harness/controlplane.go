// Package harness starts the real components that tests and the demo need: etcd and kube-apiserver, controllers as separate processes, and
// servers of artifacts.
package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
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

// Tools returns the folder with the output of tests/tools/build.sh.
func Tools() string { return filepath.Join(Root(), ".cache", "tools", "current") }

func tool(name string) string { return filepath.Join(Tools(), "bin", name) }

// assets is the folder of etcd, kube-apiserver and kubectl.
var assets = filepath.Join(Tools(), "bin")

// Assets returns the folder that was set with UseAssets. The default is that of tests/tools/build.sh.
func Assets() string { return assets }

// UseAssets sets the folder of etcd, kube-apiserver and kubectl.
func UseAssets(folder string) { assets = folder }

func asset(name string) string { return filepath.Join(assets, name) }

// ControlPlane is a running etcd and kube-apiserver.
type ControlPlane struct {
	// Config and Client have all permissions.
	Config *rest.Config
	Client client.WithWatch
	// Kubeconfig is the path of a kubeconfig with all permissions.
	Kubeconfig string

	dir             string
	pki             *pki
	ready           rest.Interface
	etcd, apiServer *Process
	people          people
	// users counts the kubeconfigs that were written.
	users atomic.Int64
}

// CRDs are the projects with the CRDs of objects that Gates govern. The folders of their CRDs have the same names, see CRDPath.
var CRDs = []string{
	"kustomize-controller", "source-controller", "helm-controller",
	"image-reflector-controller", "image-automation-controller",
	"cert-manager", "cluster-api",
}

// Lock and Machines are the CRDs of config/lock and config/machines, without policies.
const (
	addOn    = "gating-controller/"
	Lock     = addOn + "lock"
	Machines = addOn + "machines"
)

// CRDPath returns the path of the CRDs of a project in CRDs, or of Lock or Machines.
func CRDPath(project string) string {
	if name, ok := strings.CutPrefix(project, addOn); ok {
		return filepath.Join(Root(), "config", name, "crd.yaml")
	}
	return filepath.Join(Tools(), "crds", project)
}

// StartControlPlane starts etcd and kube-apiserver, and installs our CRDs and those of the given projects.
func StartControlPlane(projects ...string) (*ControlPlane, error) {
	return startControlPlane(here(), projects...)
}

// StartControlPlaneWith is like StartControlPlane, with additional arguments for the API server.
func StartControlPlaneWith(args []string, projects ...string) (*ControlPlane, error) {
	at := here()
	at.args = append(at.args, args...)
	return startControlPlane(at, projects...)
}

// place is the address of an API server, and its arguments.
type place struct {
	host, port string
	args       []string
}

// here returns a place on loopback, for a control plane without Pods.
func here() place {
	// The admission plugin ServiceAccount is disabled, because no controller creates the service accounts of namespaces.
	return place{host: loopback(), port: freePort(), args: []string{"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount"}}
}

func startControlPlane(at place, projects ...string) (*ControlPlane, error) {
	if _, err := os.Stat(asset("kube-apiserver")); err != nil {
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
	c := &ControlPlane{dir: dir, people: people{known: map[string]*Person{}}}
	if err := c.start(context.Background(), at); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	_, err = envtest.InstallCRDs(c.Config, envtest.CRDInstallOptions{Paths: paths, ErrorIfPathMissing: true})
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// lessGarbageCollection returns the environment of a server that reduces its CPU time by a fifth, but uses more memory. Without the limit,
// an API server with 10,000 targets would exhaust the memory of the machine. GOGC in the environment of the tests takes precedence.
func lessGarbageCollection() []string {
	if os.Getenv("GOGC") != "" {
		return nil
	}
	return []string{"GOGC=400", "GOMEMLIMIT=12GiB"}
}

// start starts etcd and kube-apiserver.
func (c *ControlPlane) start(ctx context.Context, at place) (err error) {
	clients := "http://" + FreeAddress()
	if c.pki, err = newPKI(c.dir, at.host); err != nil {
		return err
	}
	if err := c.connect("https://" + net.JoinHostPort(at.host, at.port)); err != nil {
		return err
	}
	etcd := program{path: asset("etcd"), ready: answers(clients + "/readyz"), env: lessGarbageCollection(), args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--listen-peer-urls=http://" + FreeAddress(),
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
	}}
	if c.etcd, err = etcd.start(ctx, c.dir); err != nil {
		return err
	}
	apiServer := program{path: asset("kube-apiserver"), ready: c.answers, env: lessGarbageCollection(), args: append([]string{
		"--etcd-servers=" + clients, "--bind-address=" + at.host, "--secure-port=" + at.port,
		"--tls-cert-file=" + c.pki.path("serving.crt"), "--tls-private-key-file=" + c.pki.path("serving.key"),
		"--client-ca-file=" + c.pki.path("users.crt"),
		"--service-account-issuer=" + c.Config.Host, "--service-account-key-file=" + c.pki.path("accounts.key"),
		"--service-account-signing-key-file=" + c.pki.path("accounts.key"), "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged",
	}, at.args...)}
	if c.apiServer, err = apiServer.start(ctx, c.dir); err != nil {
		return err
	}
	return Eventually(ctx, readyTimeout, "there are namespaces", func() error {
		return c.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
	})
}

// connect creates the clients for the API server at a URL.
func (c *ControlPlane) connect(url string) (err error) {
	// Its rate is not limited, because the client of a test stands for many clients.
	c.Config = &rest.Config{Host: url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: c.pki.serving}}
	if c.Config.CertData, c.Config.KeyData, err = c.pki.user("admin", "system:masters"); err != nil {
		return err
	}
	scheme, err := Scheme()
	if err != nil {
		return err
	}
	if c.Client, err = client.NewWithWatch(c.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	anywhere, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	c.ready = anywhere.RESTClient()
	c.Kubeconfig, err = c.writeKubeconfig("kubeconfig", c.Config)
	return err
}

// answers returns nil if the API server is ready.
func (c *ControlPlane) answers(ctx context.Context) error {
	_, err := c.ready.Get().AbsPath("/readyz").DoRaw(ctx)
	return err
}

// KubeconfigFor writes a kubeconfig for another user and returns its path. RBAC determines the permissions of the user.
func (c *ControlPlane) KubeconfigFor(user string, groups ...string) (path string, err error) {
	config := rest.CopyConfig(c.Config)
	if config.CertData, config.KeyData, err = c.pki.user(user, groups...); err != nil {
		return "", err
	}
	return c.writeKubeconfig(fmt.Sprintf("%s-%d.kubeconfig", strings.ReplaceAll(user, ":", "-"), c.users.Add(1)), config)
}

func (c *ControlPlane) writeKubeconfig(name string, config *rest.Config) (string, error) {
	path := filepath.Join(c.dir, name)
	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}, path)
}

// Kubectl runs kubectl with all permissions and returns its output.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, asset("kubectl"), args...) //nolint:gosec // the arguments are those of tests
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Dir returns a folder for files that Stop removes.
func (c *ControlPlane) Dir() string { return c.dir }

// Stop kills the processes and removes their files. No test depends on a graceful shutdown.
func (c *ControlPlane) Stop() error {
	return errors.Join(c.apiServer.Kill(), c.etcd.Kill(), os.RemoveAll(c.dir))
}

// Scheme returns the scheme of the types that tests use. Targets are unstructured.
func Scheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), lockv1alpha1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}
