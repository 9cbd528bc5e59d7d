package controllers_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/exception"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/tests/harness"
)

// startManager runs the controllers as the real process does: with caches,
// watches and the clock of the machine.
func startManager(t testing.TB, on *harness.ControlPlane, change ...func(*controllers.Gating)) *controllers.Gating {
	t.Helper()
	scheme, err := harness.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r := &controllers.Gating{
		EventRecorder: &recorder{}, Clock: clock.RealClock{}, Reach: view.Reach{AllowCrossNamespaceRefs: true},
		Metrics: runtimectrl.Metrics{}, GateMetrics: events.MustMakeMetrics(prometheus.NewRegistry()),
	}
	for _, c := range change {
		c(r)
	}
	mgr, err := ctrl.NewManager(on.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: ctrlcache.Options{DefaultNamespaces: r.Namespaces},
		Controller: config.Controller{SkipNameValidation: ptr.To(true), MaxConcurrentReconciles: 4, UsePriorityQueue: ptr.To(false)},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Client, r.APIReader, r.Calendars = mgr.GetClient(), mgr.GetAPIReader(), &calendars.Reader{}
	began := time.Now()
	opts := enqueue.Options{RateLimiter: runtimectrl.GetDefaultRateLimiter, ClockWatch: &enqueue.ClockWatch{Clock: clock.RealClock{}, Read: func() enqueue.ClockReading {
		return enqueue.ClockReading{Wall: r.Clock.Now().Round(0), Monotonic: time.Since(began)}
	}}}
	if err := mgr.Add(opts.ClockWatch); err != nil {
		t.Fatal(err)
	}
	if err := r.SetupWithManager(t.Context(), mgr, opts); err != nil {
		t.Fatal(err)
	}
	if err := (&exception.Reconciler{
		Client: r.Client, EventRecorder: r.EventRecorder, APIReader: r.APIReader, Calendars: r.Calendars, Clock: r.Clock, Metrics: r.Metrics,
		Stamped: func(context.Context) (bool, error) { return true, nil },
	}).SetupWithManager(mgr, opts); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	managerError.Store(nil)
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			managerError.Store(&err)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		if err := managerError.Load(); err != nil {
			t.Error(*err)
		}
	})
	return r
}

// managerError is the error with which the manager of a test ended. soon then fails at once.
var managerError atomic.Pointer[error]

// soon polls until a condition holds, which usually takes seconds. The deadline allows for busy machines.
func soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
		if err := managerError.Load(); err != nil {
			t.Fatalf("the manager ended: %s", *err)
		}
	}
	t.Fatalf("not in time: %s", what)
}

func (w *world) soonHeld(obj *target.Object, gates ...*v1alpha1.Gate) {
	w.Helper()
	soon(w.TB, obj.GetName()+" is held by "+strings.Join(keys(gates), ","), func() bool {
		l := w.Suspension(obj)
		return l.Suspend == true && l.HeldBy == target.FormatHeldBy(keys(gates)) && strings.HasPrefix(l.Approved, "False")
	})
}

func (w *world) soonFree(obj *target.Object) {
	w.Helper()
	soon(w.TB, obj.GetName()+" is free", func() bool {
		l := w.Suspension(obj)
		return l.Suspend == nil && l.HeldBy == "" && !strings.HasPrefix(l.Approved, "False")
	})
}

// soonStatus waits until the status of a Gate is as expected.
func (w *world) soonStatus(g *v1alpha1.Gate, what string, holds func(*v1alpha1.Gate) bool) {
	w.Helper()
	soon(w.TB, what, func() bool {
		w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g))
		return holds(g)
	})
}

// startManagerByItsClock starts a manager for only this world, because it would reconcile the Gates of all worlds each second.
func (w *world) startManagerByItsClock() {
	w.Helper()
	startManager(w.TB, cluster, func(r *controllers.Gating) {
		r.Clock, r.Namespaces = w.FakeClock, map[string]ctrlcache.Config{w.Namespace: {}}
	})
}

func keysOf(object any) []string {
	var all []string
	for name := range object.(map[string]any) { //nolint:forcetypeassert // panics in a test
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// hold holds a target for Gates as the controller does.
func hold(ctx context.Context, obj *target.Object, gates ...*v1alpha1.Gate) error {
	config := inGit(obj.GetNamespace(), obj.GetName(), nil)
	config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: target.FormatHeldBy(keys(gates))})
	config.Object["spec"] = map[string]any{"suspend": true}
	return cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
}
