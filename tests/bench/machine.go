package main

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"time"

	"k8s.io/client-go/discovery"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// machine says on what and of what the figures are.
func (b *bench) machine() ([][2]string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(b.config)
	if err != nil {
		return nil, err
	}
	kubernetes, err := client.ServerVersion()
	if err != nil {
		return nil, err
	}
	commit := exec.Command("git", "describe", "--always", "--dirty") //nolint:noctx // it is short
	commit.Dir = harness.Root()
	version, err := commit.Output()
	if err != nil {
		version = []byte("unknown")
	}
	flags := "defaults"
	if len(b.controllerArgs) > 0 {
		flags = "`" + strings.Join(b.controllerArgs, " ") + "`"
	}
	return [][2]string{
		{"Date", b.begin.UTC().Format(time.DateOnly)},
		{"Commit", strings.TrimSpace(string(version))},
		{"Processor", fmt.Sprintf("%s, %d cores", matched("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`), runtime.NumCPU())},
		{"Memory", matched("/proc/meminfo", `(?m)^MemTotal:\s*(\d+) kB`) + " KiB"},
		{"System", runtime.GOOS + "/" + runtime.GOARCH},
		{"Go", strings.TrimPrefix(runtime.Version(), "go")},
		{"Kubernetes", strings.TrimPrefix(kubernetes.GitVersion, "v")},
		{"Flags of the controller", flags},
	}, nil
}

// matched returns what an expression finds in a file.
func matched(path, expression string) string {
	content, err := os.ReadFile(path) //nolint:gosec // what the system says of itself
	if found := regexp.MustCompile(expression).FindSubmatch(content); err == nil && found != nil {
		return string(found[1])
	}
	return "unknown"
}
