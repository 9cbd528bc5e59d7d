package controllers

import (
	"os"
	"slices"
	"testing"

	_ "time/tzdata"

	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	os.Exit(harness.RunTests(m, &cluster, append(slices.Clone(harness.CRDs), harness.Lock)...))
}
