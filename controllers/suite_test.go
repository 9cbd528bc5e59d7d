package controllers_test

import (
	"os"
	"testing"

	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) { os.Exit(controllertest.RunTests(m, &cluster)) }
