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

// machine says when, on what and of what the figures of a section are.
func (b *bench) machine() (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(b.config)
	if err != nil {
		return "", err
	}
	kubernetes, err := client.ServerVersion()
	if err != nil {
		return "", err
	}
	flags := "default flags"
	if len(b.controllerArgs) > 0 {
		flags = "`" + strings.Join(b.controllerArgs, " ") + "`"
	}
	text := fmt.Sprintf("*Measured on %s at %s on %d cores of %s with %s KiB of memory (%s/%s), Go %s, Kubernetes %s, %s.*",
		time.Now().UTC().Format(time.DateOnly), b.commit, runtime.NumCPU(), matched("/proc/cpuinfo", `(?m)^model name\s*: (.*)$`),
		matched("/proc/meminfo", `(?m)^MemTotal:\s*(\d+) kB`), runtime.GOOS, runtime.GOARCH, strings.TrimPrefix(runtime.Version(), "go"),
		strings.TrimPrefix(kubernetes.GitVersion, "v"), flags)
	if b.quick {
		text += "\n\n**With `-quick`, at small sizes: these figures say nothing about the controller.**"
	}
	return text, nil
}

// commitHere returns what the working tree is of. The page itself changes it later.
func commitHere() string {
	describe := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*") //nolint:noctx // it is short
	describe.Dir = harness.Root()
	version, err := describe.Output()
	if err != nil {
		return "an unknown commit"
	}
	return strings.TrimSpace(string(version))
}

// matched returns what an expression finds in a file.
func matched(path, expression string) string {
	content, err := os.ReadFile(path) //nolint:gosec // what the system says of itself
	if found := regexp.MustCompile(expression).FindSubmatch(content); err == nil && found != nil {
		return string(found[1])
	}
	return "unknown"
}
