// Package replicas sends webhooks to processes of the built gating-controller, with the permissions of config/rbac and config/webhooks:
// under load, while replicas or the API server are down, and as on the pages about webhooks, such as docs/guides/pipelines-and-alerts.md.
package replicas

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster))
}

func setup(ctx context.Context) (func() error, error) {
	return nil, errors.Join(cluster.Install(ctx), cluster.InstallComponent(ctx, "webhooks"))
}

type world struct{ *harness.World }

func newWorld(t *testing.T) *world { return &world{harness.NewWorld(t, cluster)} }

// start starts a replica that ends with the test.
func (w *world) start(args ...string) *harness.Process {
	w.Helper()
	p, err := cluster.StartGatingController(w.Context(), args...)
	w.Must(err)
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{p} })
	w.Cleanup(func() {
		if err := p.Kill(); err != nil {
			w.Error(err)
		}
	})
	return p
}
