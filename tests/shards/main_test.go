// Package shards runs the built gating-controller as in config/sharding: two shards with two replicas each. The replicas are processes
// with the permissions of config/rbac.
package shards

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/tests/harness"
)

const (
	// patience is how long tests watch for changes that must not happen. Gates of these tests are reconciled each second.
	patience = 4 * time.Second
)

var (
	cluster *harness.ControlPlane
	// rest is the shard of all Gates without the label of one.
	rest, one *shard
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, "kustomize-controller", "source-controller"))
}

func setup(ctx context.Context) (func() error, error) {
	if err := cluster.Install(ctx); err != nil {
		return nil, err
	}
	selectors, err := selectors()
	if err != nil {
		return nil, err
	}
	rest, one = &shard{selector: selectors[""]}, &shard{selector: selectors["shard1"], label: "shard1"}
	stop := func() error { return errors.Join(rest.stop(), one.stop()) }
	return stop, errors.Join(rest.fill(ctx), one.fill(ctx))
}

type world struct{ *harness.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{harness.NewWorld(t, cluster)}
	w.ShowLogs(func() (all []*harness.Process) {
		for _, r := range append(slices.Clone(rest.replicas), one.replicas...) {
			all = append(all, r.Process)
		}
		return all
	})
	return w
}
