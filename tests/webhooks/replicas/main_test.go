// Package replicas sends webhooks to the built gating-controller as processes of
// their own, with the permissions of config/rbac and config/webhooks: under load, while
// they or the API server are away, and as docs/webhooks.md says.
package replicas

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fluxcd/gating-controller/tests/harness"
)

// timeout for what must happen; two cores may be busy.
const timeout = time.Minute

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster))
}

func setup(ctx context.Context) (func() error, error) {
	return nil, errors.Join(cluster.Install(ctx), cluster.InstallComponent(ctx, "webhooks"))
}

// world is a namespace and the processes of a test.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context()}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "replicas-"}}
	w.must(cluster.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) eventually(what string, check func() error) {
	w.Helper()
	w.must(harness.Eventually(w.ctx, timeout, what, check))
}

// start starts a replica that ends with the test.
func (w *world) start(args ...string) *harness.Process {
	w.Helper()
	p, err := cluster.StartGatingController(w.ctx, args...)
	w.must(err)
	w.Cleanup(func() {
		if err := p.Kill(); err != nil {
			w.Error(err)
		}
		if w.Failed() {
			log, err := os.ReadFile(p.Log)
			w.Logf("log of a gating-controller (%v):\n%s", err, log[max(0, len(log)-4000):])
		}
	})
	return p
}
