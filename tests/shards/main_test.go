// Package shards runs the built gating-controller as config/sharding does: two shards
// with two replicas each, which are processes of their own with the permissions of
// config/rbac.
package shards

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

const (
	// timeout for what must happen; two cores may be busy.
	timeout = time.Minute
	// patience for what must not happen. Gates of these tests are looked at each second.
	patience = 4 * time.Second
)

var (
	cluster *harness.ControlPlane
	// rest has the Gates of no other shard, one those with its label.
	rest, one *shard
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, "kustomize-controller"))
}

func setup(ctx context.Context) (func() error, error) {
	if err := cluster.Install(ctx); err != nil {
		return nil, err
	}
	selectors, err := selectors(ctx)
	if err != nil {
		return nil, err
	}
	rest, one = &shard{selector: selectors[""]}, &shard{selector: selectors["shard1"], label: "shard1"}
	stop := func() error { return errors.Join(rest.stop(), one.stop()) }
	return stop, errors.Join(rest.fill(ctx), one.fill(ctx))
}

// world is a namespace of its own.
type world struct {
	*testing.T
	ctx       context.Context
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context()}
	w.namespace = w.newNamespace()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, s := range []*shard{rest, one} {
			for _, r := range s.replicas {
				log, err := os.ReadFile(r.Log)
				t.Logf("log of a replica of shard %q (%v):\n%s", s.label, err, log[max(0, len(log)-1500):])
			}
		}
	})
	return w
}

func (w *world) newNamespace() string {
	w.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shards-"}}
	w.must(cluster.Client.Create(w.ctx, namespace))
	return namespace.Name
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
