// Package chaos walks at random through all that may happen to the built
// gating-controller, with faults in all that it depends on, and has an independent
// checker look at the cluster after each stretch.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if cluster, err = harness.StartControlPlane(harness.CRDs...); err == nil {
		err = cluster.Install(context.Background())
	}
	code := 1
	if err == nil {
		code = m.Run()
	}
	if cluster != nil {
		err = errors.Join(err, cluster.Stop())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

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

// TestNothingIsLostOnAShortWalk walks with fixed seeds, so that it is the same each time.
func TestNothingIsLostOnAShortWalk(t *testing.T) {
	if os.Getenv("STEPS") != "" {
		t.Skip("a long walk was asked for")
	}
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed+1), func(t *testing.T) { walkOf(t, seed+1, 75) })
	}
}

// TestNothingIsLostOnALongWalk is what make chaos runs. SEED is random unless it is set.
func TestNothingIsLostOnALongWalk(t *testing.T) {
	if os.Getenv("STEPS") == "" {
		t.Skip("STEPS is not set: make chaos")
	}
	walkOf(t, number(t, "SEED", rand.Uint64N(1_000_000)), int(number(t, "STEPS", 3000)))
}
