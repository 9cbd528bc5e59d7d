// Package webhooks sends webhooks to receivers that write to a real API server.
package webhooks

import (
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTests(m, &cluster))
}
