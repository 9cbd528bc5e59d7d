package controllers

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// start is when the fake clock of each test begins: a Monday.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// world is a namespace of its own and a reconciler that is called directly,
// under a clock that only the test moves.
type world struct {
	*harness.World
	*GateReconciler
	clock    *clocktesting.FakePassiveClock
	events   *recorder
	writes   *writes
	registry *prometheus.Registry
	// unstamped is that of an API server without config/policies.
	unstamped bool
	// namespaces are all of this world.
	namespaces []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		World: harness.NewWorld(t, cluster), clock: clocktesting.NewFakePassiveClock(start),
		events: &recorder{}, writes: &writes{}, registry: prometheus.NewRegistry(),
	}
	w.namespaces = []string{w.Namespace}
	w.GateReconciler = &GateReconciler{
		Client: w.writes.client(cluster.Client), EventRecorder: w.events, APIReader: cluster.Client, Clock: w.clock,
		Metrics: runtimectrl.Metrics{}, GateMetrics: MustMakeGateMetrics(w.registry),
		Backoff: runtimectrl.GetDefaultRateLimiter(),
	}
	w.Targets = shared.of(w)
	w.Locks = &Locks{Client: w.Client, APIReader: cluster.Client}
	return w
}

// NewNamespace creates another namespace of this world and returns its name.
func (w *world) NewNamespace() string {
	w.Helper()
	w.namespaces = append(w.namespaces, w.World.NewNamespace())
	return w.namespaces[len(w.namespaces)-1]
}

// in moves the clock to a time after start.
func (w *world) in(d time.Duration) time.Time {
	w.clock.SetTime(start.Add(d))
	return start.Add(d)
}

// gateIn creates a Gate in a namespace.
func (w *world) gateIn(namespace, name string, spec v1alpha1.GateSpec) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, Spec: spec}
	w.Create(g)
	return g
}

// try reconciles a Gate once, at the time of the fake clock, and reads it anew
// if it is still there. The error is also that of targets, which are tried again.
func (w *world) try(g *v1alpha1.Gate) (ctrl.Result, error) {
	w.Helper()
	result, err := w.tryNamed(g.Namespace, g.Name)
	if err := w.TryRead(g); !apierrors.IsNotFound(err) {
		w.Must(err)
	}
	if c := conditions.Get(g, meta.ReconcilingCondition); err == nil && c != nil && c.Reason == meta.ProgressingWithRetryReason {
		err = errors.New(c.Message)
	}
	return result, err
}

// tryNamed reconciles a Gate of which nobody knows whether it exists.
func (w *world) tryNamed(namespace, name string) (ctrl.Result, error) {
	w.Helper()
	result, err := w.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	if err != nil && !result.IsZero() {
		w.Errorf("%+v beside an error, with which nobody looks at it: %v", result, err)
	}
	return result, err
}

// reconcile is try that must not fail.
func (w *world) reconcile(g *v1alpha1.Gate) ctrl.Result {
	w.Helper()
	result, err := w.try(g)
	w.Must(err)
	return result
}

// open asks a Gate to open at a time.
func (w *world) open(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// close asks a Gate to close at a time.
func (w *world) close(g *v1alpha1.Gate, at time.Time) {
	w.Helper()
	w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, at.Format(time.RFC3339Nano))
}

// key is how a Gate is named in the annotation of its targets.
func key(g *v1alpha1.Gate) string { return g.Namespace + "/" + g.Name }

// named refers to one Kustomization.
func named(name string) v1alpha1.TargetReference {
	return v1alpha1.TargetReference{Kind: "Kustomization", Name: name}
}

// all refers to all Kustomizations, or to those with labels given as key, value.
func all(labels ...string) v1alpha1.TargetReference {
	ref := named(v1alpha1.AnyName)
	for i := 0; i < len(labels); i += 2 {
		ref.MatchLabels = map[string]string{labels[i]: labels[i+1]}
	}
	return ref
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
