package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// apiServerAddress is the IP address of the Service of the API server. The API server listens on it, so that no proxy must forward
	// requests.
	apiServerAddress = "10.0.0.1"
	nodeAddress      = "10.0.1.1"
	podNetwork       = "10.0.2.0/24"
	// nodeName is the name of the node.
	nodeName = "node"

	kubeletFolder    = "/var/lib/kubelet"
	containerdFolder = "/var/lib/containerd"
)

// Node runs Pods: a kubelet with containerd and runc.
type Node struct {
	cluster *ControlPlane
	// keeps are the processes of the namespaces that are not part of the node.
	keeps               map[int]bool
	containerd, kubelet *Process
}

// StartCluster starts a control plane for Pods, with the scheduler and all controllers of kube-controller-manager. Call Enter before.
func StartCluster(ctx context.Context, projects ...string) (*ControlPlane, error) {
	c, err := startControlPlane(place{host: apiServerAddress, port: "443", args: []string{
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
	}}, projects...)
	if err != nil {
		return nil, err
	}
	if _, err = c.run(ctx, tool("kube-controller-manager"), "", nil, "--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--service-account-private-key-file="+c.pki.path("accounts.key"), "--root-ca-file="+c.pki.path("serving.crt")); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	if _, err = c.run(ctx, tool("kube-scheduler"), "", nil, "--kubeconfig="+c.Kubeconfig, "--leader-elect=false", "--secure-port=0"); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

// StartNode starts a node in a cluster of StartCluster. It pulls all images from the registry at an address, regardless of the host in
// their names. The sandbox of a Pod runs the image pause.
func (c *ControlPlane) StartNode(ctx context.Context, registry, pause string) (*Node, error) {
	n := &Node{cluster: c, keeps: map[int]bool{}}
	running, err := processes()
	if err != nil {
		return nil, err
	}
	for _, pid := range running {
		n.keeps[pid] = true
	}
	kubeconfig, err := c.KubeconfigFor("system:node:"+nodeName, "system:nodes")
	if err != nil {
		return nil, err
	}
	mirror := filepath.Join(c.dir, "registries", "_default")
	network := filepath.Join(c.dir, "cni")
	err = errors.Join(os.MkdirAll(mirror, 0o700), os.MkdirAll(network, 0o700),
		os.WriteFile(filepath.Join(mirror, "hosts.toml"), fmt.Appendf(nil, "server = 'http://%[1]s'\n[host.'http://%[1]s']\n", registry), 0o600),
		os.WriteFile(filepath.Join(network, "pods.conflist"), []byte(networkConfig), 0o600),
		os.WriteFile(n.file("containerd.toml"), fmt.Appendf(nil, containerdConfig, pause, filepath.Dir(mirror), filepath.Join(Tools(), "bin"), network, tool("runc")), 0o600),
		os.WriteFile(n.file("kubelet.yaml"), fmt.Appendf(nil, kubeletConfig, c.pki.path("users.crt")), 0o600),
		os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o600),
		os.Rename(kubeconfig, n.file("node.kubeconfig")),
	)
	if err != nil {
		return nil, err
	}
	return n, n.Start(ctx)
}

func (n *Node) file(name string) string { return filepath.Join(n.cluster.dir, name) }

// networkConfig gives each Pod its own connection to the node, see https://www.cni.dev/plugins/current/main/ptp/.
const networkConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {
  "type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "` + podNetwork + `"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}`

// containerdConfig has parameters for the image of sandboxes, and for the paths of registries, CNI plugins, networks and runc.
const containerdConfig = `version = 3
root = '` + containerdFolder + `'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = '%s'
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = '%s'
[plugins.'io.containerd.cri.v1.runtime']
# A user who may not lower the score of a process could not start one otherwise.
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['%s']
conf_dir = '%s'
use_internal_loopback = true
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
BinaryName = '%s'
`

// kubeletConfig has a parameter for the CA of its clients. It is for a machine that also runs other programs, so it enforces no quality of
// service and evicts no Pods.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ` + nodeAddress + `
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %s}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupsPerQOS: false
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
enforceNodeAllocatable: []
evictionHard: {memory.available: 0%%, nodefs.available: 0%%, nodefs.inodesFree: 0%%, imagefs.available: 0%%, imagefs.inodesFree: 0%%}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
makeIPTablesUtilChains: false
resolvConf: ""
`

// Start starts the node, for the first time or after Crash, and waits until Pods may run on it.
func (n *Node) Start(ctx context.Context) (err error) {
	c := n.cluster
	if n.containerd, err = c.run(ctx, tool("containerd"), "", []string{"PATH=" + filepath.Join(Tools(), "bin") + ":" + os.Getenv("PATH")}, "--config="+n.file("containerd.toml")); err != nil {
		return err
	}
	if err := Eventually(ctx, readyTimeout, "containerd is ready", func() error {
		_, err := os.Stat("/run/containerd/containerd.sock")
		return err
	}); err != nil {
		return err
	}
	n.kubelet, err = c.run(ctx, tool("kubelet"), "", nil, "--config="+n.file("kubelet.yaml"), "--kubeconfig="+n.file("node.kubeconfig"),
		"--root-dir="+kubeletFolder, "--cert-dir="+filepath.Join(kubeletFolder, "pki"), "--hostname-override="+nodeName, "--node-ip="+nodeAddress)
	if err != nil {
		return err
	}
	return Eventually(ctx, readyTimeout, "the node is ready", n.ready(ctx))
}

// ready returns an error unless the API server has a ready node without taints.
func (n *Node) ready(ctx context.Context) func() error {
	return func() error {
		node := &corev1.Node{}
		if err := n.cluster.Client.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
			return err
		}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue && len(node.Spec.Taints) == 0 {
				return nil
			}
		}
		return fmt.Errorf("conditions %v, taints %v", node.Status.Conditions, node.Spec.Taints)
	}
}

// Crash kills all processes of the node at once, as a power failure does. Only files on disk remain.
func (n *Node) Crash(ctx context.Context) error {
	if err := Eventually(ctx, stopTimeout, "nobody runs", func() error {
		running, err := processes()
		if err != nil {
			return err
		}
		left := 0
		for _, pid := range running {
			if !n.keeps[pid] {
				left++
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended meanwhile
			}
		}
		if left > 0 {
			return fmt.Errorf("%d processes do", left)
		}
		return nil
	}); err != nil {
		return err
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(mounts)) {
		if path := strings.Fields(line)[1]; strings.HasPrefix(path, kubeletFolder+"/pods/") {
			err = errors.Join(err, syscall.Unmount(path, syscall.MNT_DETACH))
		}
	}
	return errors.Join(err, syscall.Unmount("/run", syscall.MNT_DETACH), mount("run", "/run", "tmpfs", 0, ""))
}

// processes returns the IDs of all running processes.
func processes() ([]int, error) {
	folders, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var running []int
	for _, folder := range folders {
		pid, err := strconv.Atoi(folder.Name())
		if err != nil {
			continue
		}
		// A zombie has no memory.
		if status, err := os.ReadFile(filepath.Join("/proc", folder.Name(), "status")); err == nil && strings.Contains(string(status), "\nVmSize:") {
			running = append(running, pid)
		}
	}
	return running, nil
}
