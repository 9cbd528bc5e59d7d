package controllers

import (
	"os"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/tz/tztest"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

// onWrongZones runs the tests, but not the control plane, where the zones of the machine
// are wrong.
type onWrongZones struct{ *testing.M }

func (m onWrongZones) Run() int { return tztest.Run(m.M) }

func TestMain(m *testing.M) {
	os.Exit(harness.RunTestsAfter(shareTargets, onWrongZones{m}, &cluster, append(slices.Clone(harness.CRDs), harness.Lock)...))
}
