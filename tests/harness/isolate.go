package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

// isolated is set in a process that Isolate has started, to the name of the cgroup of its Pods.
const isolated = "HARNESS_ISOLATED"

// namespaces are those that a node gets. All that runs in them ends with the first process, and what it has mounted and
// connected is gone.
const namespaces = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET

// IsIsolated says whether Isolate has started this process.
func IsIsolated() bool { return os.Getenv(isolated) != "" }

// WhyNoNode says why this machine cannot run StartNode, empty if it can.
func WhyNoNode() string {
	if os.Geteuid() != 0 {
		return "a node needs root"
	}
	for _, name := range []string{"kubelet", "containerd", "runc"} {
		if _, err := os.Stat(tool(name)); err != nil {
			return "there is no " + name + ", see tests/tools/build.sh node"
		}
	}
	probe := exec.Command("ip", "link", "add", "one", "type", "veth", "peer", "name", "other") //nolint:noctx // ends at once
	probe.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if out, err := probe.CombinedOutput(); err != nil {
		return fmt.Sprintf("a node needs namespaces and network devices of its own: %v %s", err, out)
	}
	return ""
}

// Isolate runs this program once more, as the first process of namespaces of its own, and returns its exit code. There, it has
// an empty /run, /var/log and /var/lib/kubelet, and a network that nobody else reaches.
func Isolate(env ...string) (code int, err error) {
	endWithGo()
	cgroup := fmt.Sprintf("gating-%d", os.Getpid())
	again := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:gosec,noctx // this program
	again.Args[0] = os.Args[0]
	again.Env = append(append(os.Environ(), isolated+"="+cgroup), env...)
	again.Stdin, again.Stdout, again.Stderr = os.Stdin, os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: namespaces}
	if err := fork(again); err != nil {
		return 1, err
	}
	err = again.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return again.ProcessState.ExitCode(), errors.Join(err, removeCgroups(cgroup))
}

// removeCgroups removes those of a name, and the ones below them, in which nothing runs any more.
func removeCgroups(name string) error {
	found, err := filepath.Glob(filepath.Join("/sys/fs/cgroup", "*", name))
	if err != nil {
		return err
	}
	for _, root := range append(found, filepath.Join("/sys/fs/cgroup", name)) {
		var folders []string
		err = errors.Join(err, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil && entry.IsDir() {
				folders = append(folders, path)
			}
			return err
		}))
		for _, folder := range slices.Backward(folders) {
			err = errors.Join(err, syscall.Rmdir(folder))
		}
	}
	return err
}

// Enter makes the namespaces what Isolate says. It comes first in a process that Isolate has started.
func Enter() error {
	// What is mounted here stays here. Containers see it.
	err := errors.Join(
		mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""), mount("", "/", "", syscall.MS_SHARED|syscall.MS_REC, ""),
		mount("proc", "/proc", "proc", 0, ""), mount("run", "/run", "tmpfs", 0, ""), mount("log", "/var/log", "tmpfs", 0, ""),
		os.Mkdir("/run/new", 0o755), os.Mkdir("/run/work", 0o755), //nolint:gosec // as they are everywhere
		// What is there stays readable, and what is written is gone with the rest.
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
