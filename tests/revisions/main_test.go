// Package revisions tests GatedSources with a Git server, an OCI registry, the real source-controller and
// kustomize-controller, and config/policies. It also runs the commands of docs/guides/approve-a-revision.md.
package revisions

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// The parts that all tests share. Some tests restart source-controller.
var (
	cluster                    *harness.ControlPlane
	gating, sources, kustomize *harness.Process
	git                        *harness.GitServer
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

func setup(ctx context.Context) (func() error, error) {
	stop := func() error {
		if git != nil {
			git.Stop()
		}
		return errors.Join(gating.Stop(), sources.Stop(), kustomize.Stop())
	}
	dir := filepath.Join(cluster.Dir(), "git")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return stop, err
	}
	if err := cluster.Install(ctx); err != nil {
		return stop, err
	}
	if err := cluster.InstallComponent(ctx, "policies"); err != nil {
		return stop, err
	}
	var err error
	if git, err = harness.StartGitServer(ctx, dir); err != nil {
		return stop, err
	}
	for _, p := range []struct {
		process **harness.Process
		start   func(context.Context) (*harness.Process, error)
	}{
		{&sources, cluster.StartSourceController},
		{&kustomize, cluster.StartKustomizeController},
		{&gating, func(ctx context.Context) (*harness.Process, error) { return cluster.StartGatingController(ctx) }},
	} {
		if *p.process, err = p.start(ctx); err != nil {
			return stop, err
		}
	}
	return stop, nil
}
