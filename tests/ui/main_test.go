// Package ui opens the pages of kubectl gate ui and of the controller, on a real API server with the real controller, in a browser.
package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// The parts that all tests share.
var (
	cluster *harness.ControlPlane
	gating  *harness.Process
	// leading is the address of the pages of the leader.
	leading string
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (stop func() error, err error) {
	stop = func() error {
		if gating == nil {
			return nil
		}
		return gating.Stop()
	}
	if err := cluster.Install(ctx); err != nil {
		return stop, err
	}
	if _, err := cluster.Kubectl(ctx, "apply", "-f", filepath.Join(harness.Root(), "config", "policies", "gate_viewer_role.yaml")); err != nil {
		return stop, err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", program(), "./cmd/kubectl-gate")
	build.Dir, build.Env = harness.Root(), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return stop, errors.Join(fmt.Errorf("building kubectl-gate: %w: %s", err, out))
	}
	if err := installPages(ctx); err != nil {
		return stop, err
	}
	address := harness.FreeAddress()
	leading = "http://" + address + "/"
	// The controller keeps the lease while a test pauses the API server, which takes longer than the default of 30 seconds on a busy machine.
	gating, err = cluster.StartGatingController(ctx, "--enable-leader-election", "--leader-election-lease-duration=5m", "--leader-election-renew-deadline=4m",
		"--ui-addr="+address, "--ui-anonymous")
	return stop, err
}

// program is the path of the plugin.
func program() string { return filepath.Join(cluster.Dir(), "kubectl-gate") }
