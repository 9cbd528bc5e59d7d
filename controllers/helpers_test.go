package controllers_test

import (
	"reflect"
	"testing"

	"github.com/fluxcd/gating-controller/controllers/controllertest"
)

// world is a namespace with reconcilers that the test calls, and with the helpers of this package.
type world struct{ *controllertest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{controllertest.New(t)}
}

type (
	suspension = controllertest.Suspension
	recorder   = controllertest.Recorder
)

var (
	start = controllertest.Start
	key   = controllertest.Key
	keys  = controllertest.Keys
	named = controllertest.Named
	all   = controllertest.All
	inGit = controllertest.InGit

	newTargetList = controllertest.NewTargetList

	errBroken = controllertest.ErrBroken
	failing   = controllertest.Failing
	once      = controllertest.Once
	conflict  = controllertest.Conflict
)

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
