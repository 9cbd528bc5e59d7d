package controllers_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers/controllertest"
	"github.com/fluxcd/gating-controller/internal/target"
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

// crowd fills the annotations of an object and leaves room for some bytes.
func (w *world) crowd(obj *target.Object, room int) {
	w.Helper()
	for key, value := range w.Reload(obj).GetAnnotations() {
		room += len(key) + len(value)
	}
	w.PatchAsFlux(obj, `{"metadata":{"annotations":{"big":"`+strings.Repeat("x", 256*1024-len("big")-room)+`"}}}`)
}

// emptyGates is a client whose cache has no Gates.
type emptyGates struct{ client.Client }

func (emptyGates) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// broken sets a spec that the API server accepts but that does not compile.
func broken(g *v1alpha1.Gate) {
	g.Spec.ClosePeriods = []v1alpha1.ClosePeriod{{Period: v1alpha1.Period{Name: "leap", Schedule: ptr.To("0 0 31 4-6/2 *"), Duration: duration(time.Hour)}}}
}
