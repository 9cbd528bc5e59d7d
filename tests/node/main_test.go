// Package node installs the image on a real node with kubelet, containerd and runc, and a real control plane. It uses the unchanged
// Deployment of config.
package node

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// The parts that all tests share. Each test leaves one replica of the version latest behind.
var (
	cluster *harness.ControlPlane
	node    *harness.Node
	// whyNot is the reason why the node could not be started.
	whyNot string
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	flag.Parse()
	code, err := run(context.Background(), m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run builds the images, which may need the network, and runs the tests without network access.
func run(ctx context.Context, m *testing.M) (code int, err error) {
	if harness.IsIsolated() {
		return isolated(ctx, m)
	}
	if whyNot = harness.WhyNoNode(); whyNot != "" {
		return m.Run(), nil
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	folder, err := os.MkdirTemp("", "gating-node-")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := buildImages(ctx, folder); err != nil {
		return 1, err
	}
	return harness.Isolate(ctx, folder)
}

func isolated(ctx context.Context, m *testing.M) (int, error) {
	if err := harness.Enter(); err != nil {
		return 1, err
	}
	registry, err := serveImages(harness.IsolatedFolder())
	if err != nil {
		return 1, err
	}
	if cluster, err = harness.StartCluster(ctx, "kustomize-controller", "source-controller"); err != nil {
		return 1, err
	}
	if node, err = cluster.StartNode(ctx, registry, pause); err != nil {
		return 1, err
	}
	if err := errors.Join(install(ctx, latest, 1), rolledOut(ctx)); err != nil {
		return 1, err
	}
	return m.Run(), cluster.Stop()
}
