package controllers

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	_ "time/tzdata"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

var cluster *harness.ControlPlane

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	var err error
	if cluster, err = harness.StartControlPlane(harness.CRDs...); err != nil {
		fmt.Fprintln(os.Stderr, "starting the control plane:", err)
		return 1
	}
	defer func() {
		if err := cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
		}
	}()
	return m.Run()
}

// start is when the fake clock of each test begins: a Monday.
var start = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// world is a namespace of its own and a reconciler that is called directly,
// under a clock that only the test moves.
type world struct {
	*testing.T
	*GateReconciler
	ctx       context.Context
	clock     *clocktesting.FakePassiveClock
	events    *record.FakeRecorder
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context(), clock: clocktesting.NewFakePassiveClock(start), events: record.NewFakeRecorder(1000)}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "world-"}}
	w.must(cluster.Client.Create(w.ctx, namespace))
	w.namespace = namespace.Name
	w.GateReconciler = &GateReconciler{
		Client: cluster.Client, EventRecorder: w.events, APIReader: cluster.Client, Clock: w.clock,
		Targets: liveTargets{}, Metrics: runtimectrl.Metrics{}, GateMetrics: MustMakeGateMetrics(prometheus.NewRegistry()),
	}
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// gate creates a Gate from its spec.
func (w *world) gate(name string, spec v1alpha1.GateSpec) *v1alpha1.Gate {
	w.Helper()
	g := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: w.namespace}, Spec: spec}
	w.must(cluster.Client.Create(w.ctx, g))
	return g
}

// reconcile reconciles a Gate once, at the time of the fake clock, and reads it
// anew.
func (w *world) reconcile(g *v1alpha1.Gate) ctrl.Result {
	w.Helper()
	result, err := w.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
	w.must(err)
	if err := cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(g), g); !apierrors.IsNotFound(err) {
		w.must(err)
	}
	return result
}

// kustomization creates a target.
func (w *world) kustomization(name string, labels map[string]string) *target.Object {
	w.Helper()
	obj := &target.Object{}
	obj.Object = map[string]any{"spec": map[string]any{
		"interval": "1h", "prune": true, "sourceRef": map[string]any{"kind": "GitRepository", "name": "none"},
	}}
	obj.SetAPIVersion("kustomize.toolkit.fluxcd.io/v1")
	obj.SetKind("Kustomization")
	obj.SetNamespace(w.namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	w.must(cluster.Client.Create(w.ctx, &obj.Unstructured, client.FieldOwner("kustomize-controller")))
	return obj
}

// reload reads a target anew.
func (w *world) reload(obj *target.Object) *target.Object {
	w.Helper()
	w.must(cluster.Client.Get(w.ctx, client.ObjectKeyFromObject(obj), obj))
	return obj
}

// suspended returns whether spec.suspend of a target is true.
func (w *world) suspended(obj *target.Object) bool {
	w.Helper()
	suspended, _, err := unstructured.NestedBool(w.reload(obj).Object, "spec", "suspend")
	w.must(err)
	return suspended
}

// liveTargets reads from the API server, so that a test sees its own writes.
type liveTargets struct{}

func (liveTargets) list(ctx context.Context, adapter target.Adapter, opts ...client.ListOption) ([]*target.Object, error) {
	mapping, err := cluster.Client.RESTMapper().RESTMapping(adapter.GroupKind())
	if err != nil {
		return nil, ErrNotInstalled
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(mapping.GroupVersionKind)
	if err := cluster.Client.List(ctx, list, opts...); err != nil {
		return nil, err
	}
	var targets []*target.Object
	for i := range list.Items {
		target.Trim(&list.Items[i], v1alpha1.FieldManager)
		targets = append(targets, &target.Object{Unstructured: list.Items[i]})
	}
	return targets, nil
}

func (l liveTargets) Select(ctx context.Context, adapter target.Adapter, namespace string, ref v1alpha1.TargetReference) ([]*target.Object, error) {
	all, err := l.list(ctx, adapter, client.InNamespace(namespace), client.MatchingLabels(ref.MatchLabels))
	var found []*target.Object
	for _, t := range all {
		if ref.Name == v1alpha1.AnyName || ref.Name == t.GetName() {
			found = append(found, t)
		}
	}
	return found, err
}

func (l liveTargets) HeldBy(ctx context.Context, gate string) ([]*target.Object, error) {
	var held []*target.Object
	for _, adapter := range target.All() {
		all, err := l.list(ctx, adapter)
		if err != nil && err != ErrNotInstalled { //nolint:errorlint // this is what list returns
			return nil, err
		}
		for _, t := range all {
			for _, name := range target.ParseHeldBy(t.GetAnnotations()[v1alpha1.HeldByAnnotation]) {
				if name == gate {
					held = append(held, t)
				}
			}
		}
	}
	return held, nil
}
