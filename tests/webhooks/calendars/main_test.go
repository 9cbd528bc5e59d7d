// Package calendars subscribes to CalendarFeeds of the built gating-controller. The controllers run as processes with the permissions of
// config/rbac and config/calendar-feed, as in docs/guides/subscribe.md.
package calendars

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster))
}

func setup(ctx context.Context) (func() error, error) { return nil, cluster.Install(ctx) }

// kustomization is the kustomization of config/default with calendars, as in docs/guides/subscribe.md.
const kustomization = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n- config/default\ncomponents:\n- config/calendar-feed\n"

// folder returns a copy of config with a kustomization.
func folder(t *testing.T, kustomization string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "config"), os.DirFS(filepath.Join(harness.Root(), "config"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(kustomization), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// served is a controller that serves calendars.
type served struct {
	*harness.Process
	url string
}

// start starts a replica that ends with the test.
func start(w *harness.World, args ...string) *served {
	w.Helper()
	address := harness.FreeAddress()
	p, err := w.StartGatingController(w.Context(), append([]string{"--calendar-addr=" + address, "--receiver-addr=", "--log-level=trace"}, args...)...)
	w.Must(err)
	w.ShowLogs(func() []*harness.Process { return []*harness.Process{p} })
	w.Cleanup(func() {
		if err := p.Stop(); err != nil {
			w.Error(err)
		}
	})
	return &served{p, fmt.Sprintf("http://%s", address)}
}
