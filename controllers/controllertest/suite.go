package controllertest

import (
	"context"
	"slices"
	"testing"

	"github.com/fluxcd/gating-controller/internal/tz/tztest"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// controlPlane is the control plane of all worlds.
var controlPlane *harness.ControlPlane

// RunTests starts a control plane, stores it in cluster, runs the tests of a package and returns their exit code.
func RunTests(m *testing.M, cluster **harness.ControlPlane) int {
	setup := func(ctx context.Context) (func() error, error) {
		*cluster = controlPlane
		return shareTargets(ctx)
	}
	return harness.RunTestsAfter(setup, onWrongZones{m}, &controlPlane, append(slices.Clone(harness.CRDs), harness.Lock)...)
}

// onWrongZones runs the tests with wrong time zone data on the machine. The control plane has correct data.
type onWrongZones struct{ *testing.M }

func (m onWrongZones) Run() int { return tztest.Run(m.M) }
