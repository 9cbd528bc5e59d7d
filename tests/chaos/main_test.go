// Package chaos performs random walks with the built gating-controller and faults in all its dependencies. An independent checker examines
// the cluster after each stretch of steps.
package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	setup := func(ctx context.Context) (func() error, error) { return nil, cluster.Install(ctx) }
	os.Exit(harness.RunTestsAfter(setup, m, &cluster, harness.CRDs...))
}

// long returns whether a long walk was requested.
func long() bool { return os.Getenv("STEPS") != "" }

// number returns a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// TestShortWalk walks with fixed seeds, which makes it reproducible.
func TestShortWalk(t *testing.T) {
	if long() {
		t.Skip("a long walk was requested")
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) { walkOf(t, seed+1, 75) })
	}
}

// TestLongWalk is the test that make chaos runs. SEED is random unless it is set.
func TestLongWalk(t *testing.T) {
	if !long() {
		t.Skip("STEPS is not set: make chaos")
	}
	walkOf(t, number(t, "SEED", rand.Uint64N(1_000_000)), int(number(t, "STEPS", 3000)))
}
