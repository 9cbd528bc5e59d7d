// Package api_test tries the definitions of Gates and GateExceptions on a real API server.
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
