package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// isolated is an environment variable that Isolate sets in the process that it starts.
const isolated = "HARNESS_ISOLATED"

// namespaces are the namespaces of a node. When the first process ends, the kernel kills all others in them, and removes their mounts and
// network devices.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET

// IsIsolated returns whether Isolate has started this process.
func IsIsolated() bool { return os.Getenv(isolated) != "" }

// WhyNoNode returns why this machine cannot run StartNode, empty if it can.
func WhyNoNode() string {
	if os.Geteuid() != 0 {
		return "a node needs root"
	}
	for _, name := range []string{"kubelet", "containerd", "runc"} {
		if _, err := os.Stat(tool(name)); err != nil {
			return "there is no " + name + ", see tests/tools/build.sh node"
		}
	}
	probe := exec.Command("sh", "-euc", tryOut, "sh", tool("runc")) //nolint:gosec,noctx // ends at once
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if out, err := probe.CombinedOutput(); err != nil {
		return fmt.Sprintf("a node needs namespaces, mounts and network devices of its own: %v %s", err, out)
	}
	return ""
}

// tryOut checks the features of the machine that a node needs.
const tryOut = `mount --make-rprivate /
mount -t tmpfs run /run
mkdir /run/new /run/work
mount -t overlay -o lowerdir=/var/lib,upperdir=/run/new,workdir=/run/work lib /var/lib
ip link add one type veth peer name other
"$1" --version`

// Isolate runs this program again, as the first process of new namespaces, and returns its exit code. That process has an empty /run,
// /var/log and /var/lib/kubelet, and an isolated network. Its temporary files are in folder.
func Isolate(ctx context.Context, folder string) (code int, err error) {
	endWithGo()
	before, err := podCgroups()
	if err != nil {
		return 1, err
	}
	again := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...) //nolint:gosec // this program
	again.Args[0] = os.Args[0]
	again.Env = append(os.Environ(), isolated+"="+folder, "TMPDIR="+folder)
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := fork(again); err != nil {
		return 1, err
	}
	err = again.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = ctx.Err()
	}
	return again.ProcessState.ExitCode(), errors.Join(err, removeCgroups(before))
}

// IsolatedFolder returns the folder that was passed to Isolate.
func IsolatedFolder() string { return os.Getenv(isolated) }

// podCgroups returns the cgroups that containerd has created for Pods on this machine, and their parents. Namespaces do not hide them.
func podCgroups() (all []string, err error) {
	for _, pattern := range []string{"/sys/fs/cgroup/k8s.io", "/sys/fs/cgroup/*/k8s.io"} {
		for _, of := range []string{pattern, pattern + "/*"} {
			found, err := filepath.Glob(of)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	// A file is not a cgroup.
	return slices.DeleteFunc(all, func(path string) bool {
		info, err := os.Stat(path)
		return err != nil || !info.IsDir()
	}), nil
}

// removeCgroups removes the cgroups of Pods that did not exist before. Their processes have ended.
func removeCgroups(before []string) error {
	now, err := podCgroups()
	if err != nil {
		return err
	}
	slices.Sort(now)
	for _, path := range slices.Backward(now) { // children first
		if !slices.Contains(before, path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// Enter sets up the namespaces as described at Isolate. Call it first in a process that Isolate has started.
func Enter() error {
	// Mounts do not propagate to the host, but to containers.
	err := errors.Join(
		mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""), mount("", "/", "", syscall.MS_SHARED|syscall.MS_REC, ""),
		mount("proc", "/proc", "proc", 0, ""), mount("run", "/run", "tmpfs", 0, ""), mount("log", "/var/log", "tmpfs", 0, ""),
		os.Mkdir("/run/new", 0o755), os.Mkdir("/run/work", 0o755), //nolint:gosec // as they are everywhere
		// Existing files stay readable. New ones are removed with the overlay.
		mount("lib", "/var/lib", "overlay", 0, "lowerdir=/var/lib,upperdir=/run/new,workdir=/run/work"),
	)
	for _, folder := range []string{kubeletFolder, containerdFolder} {
		err = errors.Join(err, os.MkdirAll(folder, 0o755), mount("node", folder, "tmpfs", 0, "")) //nolint:gosec // as they are everywhere
	}
	for _, args := range [][]string{
		{"link", "set", "lo", "up"}, {"address", "add", apiServerAddress + "/32", "dev", "lo"}, {"address", "add", nodeAddress + "/32", "dev", "lo"},
	} {
		if out, failed := exec.Command("ip", args...).CombinedOutput(); failed != nil { //nolint:gosec,noctx // our own arguments
			err = errors.Join(err, fmt.Errorf("ip %v: %w: %s", args, failed, out))
		}
	}
	return err
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := syscall.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mounting %s at %s: %w", kind, target, err)
	}
	return nil
}
