// Package harness starts the real parts that tests and the demo need: etcd and
// kube-apiserver, controllers as processes of their own, and artifacts for them.
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

// Tools returns the folder with what tests/tools/build.sh has built.
func Tools() string { return filepath.Join(Root(), ".cache", "tools", "current") }

func tool(name string) string { return filepath.Join(Tools(), "bin", name) }

// assets is the folder of etcd, kube-apiserver and kubectl.
var assets = filepath.Join(Tools(), "bin")

// Assets is the folder that UseAssets has named, or that of tests/tools/build.sh.
func Assets() string { return assets }

// UseAssets takes etcd, kube-apiserver and kubectl from a folder, and not from that of tests/tools/build.sh.
func UseAssets(folder string) { assets = folder }

func asset(name string) string { return filepath.Join(assets, name) }

// ControlPlane is a running etcd and kube-apiserver.
type ControlPlane struct {
	// Config and Client have all permissions.
	Config *rest.Config
	Client client.WithWatch
	// Kubeconfig is the path of a file with the same permissions.
	Kubeconfig string

	dir             string
	pki             *pki
	ready           rest.Interface
	etcd, apiServer *Process
	people          people
	// users is how many kubeconfigs there are.
	users atomic.Int64
}

// CRDs are the folders with the definitions of the objects that Gates govern.
// They are named as their projects.
var CRDs = []string{
	"kustomize-controller", "source-controller", "helm-controller",
	"image-reflector-controller", "image-automation-controller",
	"cert-manager", "cluster-api",
}

// Lock and Machines are the definitions of config/lock and config/machines alone, without policies.
const (
	addOn    = "gating-controller/"
	Lock     = addOn + "lock"
	Machines = addOn + "machines"
)

// CRDPath returns where the definitions of one of CRDs are, or of Lock or Machines.
func CRDPath(project string) string {
	if name, ok := strings.CutPrefix(project, addOn); ok {
		return filepath.Join(Root(), "config", name, "crd.yaml")
	}
	return filepath.Join(Tools(), "crds", project)
}

// StartControlPlane starts etcd and kube-apiserver with the definition of Gates
// and those in the folders named by projects.
func StartControlPlane(projects ...string) (*ControlPlane, error) {
	return startControlPlane(here(), projects...)
}

// StartControlPlaneWith is StartControlPlane with more arguments for the API server.
func StartControlPlaneWith(args []string, projects ...string) (*ControlPlane, error) {
	at := here()
	at.args = append(at.args, args...)
	return startControlPlane(at, projects...)
}

// place is where an API server is, and its arguments there.
type place struct {
	host, port string
	args       []string
}

// here is on loopback, where there are no Pods.
func here() place {
	// Nobody creates the service accounts of namespaces.
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

// lessGarbageCollection saves a fifth of the CPU of a server, for memory. An API server with 10,000 targets would take all of a machine
// without a limit, and stand still.
var lessGarbageCollection = []string{"GOGC=400", "GOMEMLIMIT=12GiB"}

// start starts both programs.
func (c *ControlPlane) start(ctx context.Context, at place) (err error) {
	clients := "http://" + FreeAddress()
	if c.pki, err = newPKI(c.dir, at.host); err != nil {
		return err
	}
	if err := c.connect("https://" + net.JoinHostPort(at.host, at.port)); err != nil {
		return err
	}
	etcd := program{path: asset("etcd"), ready: answers(clients + "/readyz"), env: lessGarbageCollection, args: []string{
		"--data-dir=" + filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--listen-peer-urls=http://" + FreeAddress(),
		"--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
	}}
	if c.etcd, err = etcd.start(ctx, c.dir); err != nil {
		return err
	}
	apiServer := program{path: asset("kube-apiserver"), ready: c.answers, env: lessGarbageCollection, args: append([]string{
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

// connect makes the clients for the API server at a URL.
func (c *ControlPlane) connect(url string) (err error) {
	// Tests are many clients in one.
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

// KubeconfigFor writes a kubeconfig for another user and returns its path. RBAC
// says what the user may do.
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

// Kubectl runs kubectl with all permissions and returns what it printed.
func (c *ControlPlane) Kubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, asset("kubectl"), args...) //nolint:gosec // the arguments are those of tests
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Dir is a folder for files that are gone after Stop.
func (c *ControlPlane) Dir() string { return c.dir }

// Stop ends the processes and removes their files. Nobody needs them to end in order.
func (c *ControlPlane) Stop() error {
	return errors.Join(c.apiServer.Kill(), c.etcd.Kill(), os.RemoveAll(c.dir))
}

// Scheme returns the scheme of the types that tests use; targets are
// unstructured.
func Scheme() (*apiruntime.Scheme, error) {
	scheme := apiruntime.NewScheme()
	return scheme, errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), lockv1alpha1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}
