// Package install applies config to a real API server, in the ways that the docs describe.
package install

import (
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTests(m, &cluster, "kustomize-controller", "source-controller"))
}
