// Package api_test tests the CustomResourceDefinitions against a real API server.
package api_test

import (
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTests(m, &cluster, harness.Lock, harness.Machines))
}
