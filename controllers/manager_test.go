package controllers_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fluxcd/pkg/runtime/conditions"
	runtimectrl "github.com/fluxcd/pkg/runtime/controller"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/controllers/calendars"
	"github.com/fluxcd/gating-controller/controllers/enqueue"
	"github.com/fluxcd/gating-controller/controllers/events"
	"github.com/fluxcd/gating-controller/controllers/exception"
	"github.com/fluxcd/gating-controller/controllers/view"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
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

// managerError is why the manager of a test ended, so that nothing waits for it.
var managerError atomic.Pointer[error]

// soon polls until a condition holds, which must be within seconds. The
// deadline is for machines that are busy.
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

// startManagerByItsClock starts one that sees this world alone: the Gates of all others would
// be looked at each second.
func (w *world) startManagerByItsClock() {
	w.Helper()
	startManager(w.TB, cluster, func(r *controllers.Gating) {
		r.Clock, r.Namespaces = w.FakeClock, map[string]ctrlcache.Config{w.Namespace: {}}
	})
}

// The gate does not exist, so that only the certificate names it.
func TestACertificateOfAMissingGateIsLetGoWhenTheClockIsSet(t *testing.T) {
	w := newWorld(t)
	w.startManagerByItsClock()
	www := w.certificate("www", nil)
	w.issue(www, start.Add(-200*day), expiry)
	w.name(www, "nobody")
	held := func() bool {
		policy, _, _ := unstructured.NestedString(w.Reload(www).Object, "spec", "renewal", "policy")
		return policy == "Disabled"
	}
	for range 5 { // a change of the clock may meet the event of the write before
		w.FakeClock.SetTime(start)
		soon(t, "the certificate is held", held)
		w.FakeClock.SetTime(margin)
		soon(t, "the certificate is let go", func() bool { return !held() })
	}
}

// Nothing but the clock tells that the time has come: a delay that is hours long does not
// see that the clock was set, or that the machine was suspended.
func TestAGateAndAnExceptionFollowTheClockThatIsSet(t *testing.T) {
	w := newWorld(t)
	w.startManagerByItsClock()
	app := w.NewKustomization("apps", nil)
	g := w.Gate("daily", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: *duration(day), Targets: []v1alpha1.TargetReference{all()},
		OpenPeriods: []v1alpha1.Period{dated("later", hours(1), hours(2))},
	})
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Suspend: true}) // so that it does not tell the exception
	e := w.exception("hotfix", openingIt, hours(1), hours(2), func(e *v1alpha1.GateException) {
		e.Spec.TTLAfterExpired = duration(hours(1))
	})
	reason := func(want string) {
		t.Helper()
		soon(t, "the exception is "+want, func() bool { w.Read(e); return conditions.GetReason(e, v1alpha1.ActiveCondition) == want })
	}
	w.soonHeld(app, g)
	reason(v1alpha1.GateNotReadyReason)
	w.In(hours(1))
	w.soonFree(app)
	w.In(0)
	w.soonHeld(app, g)
	w.In(hours(2.5))
	reason(v1alpha1.ExpiredReason)
	w.In(hours(3))
	soon(t, "the exception is deleted", func() bool { return w.gone(e) })
}

// With --watch-all-namespaces=false, the cache does not know other namespaces, and says so
// by an error.
func TestAnObjectThatNamesAGateInANamespaceThatNobodyWatchesIsHeld(t *testing.T) {
	w := newWorld(t)
	startManager(t, cluster, func(r *controllers.Gating) { r.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}} })
	other := w.NewNamespace()
	qa := w.GateIn(other, "qa", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	app, www := w.NewKustomization("apps", nil), w.certificate("www", nil)
	for _, obj := range []*target.Object{app, www} {
		w.name(obj, key(qa))
		soon(t, obj.GetKind()+" is held", func() bool { return strings.HasPrefix(w.Suspension(obj).Approved, "False AccessDenied") })
		w.name(obj)
		soon(t, obj.GetKind()+" is free", func() bool { return w.Suspension(obj).HeldBy == "" })
	}
}

func TestATargetInANamespaceThatNobodyWatchesKeepsNoOtherFromBeingHeld(t *testing.T) {
	w := newWorld(t)
	other := w.NewNamespace()
	there := inGit(other, "apps", nil)
	w.Git(there)
	startManager(t, cluster, func(r *controllers.Gating) { r.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}} })
	app := w.NewKustomization("apps", nil)
	far := all()
	far.Namespace = other
	g := w.ClosedGate("production", far, all())
	w.soonHeld(app, g)
	w.soonStatus(g, "the failure is told", func(g *v1alpha1.Gate) bool {
		return slices.Equal(failuresOf(g), []string{"Kustomization/* AccessDenied"}) && g.Status.Targets != nil && g.Status.Targets.Held == 1
	})
	w.ExpectUntouched(there)
	w.Open(g, time.Now())
	w.soonFree(app)
}

func TestWatches(t *testing.T) {
	r := startManager(t, cluster)

	t.Run("an object that appears while its gate is closed is held", func(t *testing.T) {
		w := newWorld(t)
		g := w.ClosedGate("production", all())
		w.soonStatus(g, "the gate is reconciled", func(g *v1alpha1.Gate) bool { return g.Status.Targets != nil })
		app := w.NewKustomization("late", nil)
		w.soonHeld(app, g)
		w.soonStatus(g, "the object is counted", func(g *v1alpha1.Gate) bool { return g.Status.Targets.Held == 1 })
		w.Must(cluster.Client.Delete(w.Context(), &app.Unstructured))
		w.soonStatus(g, "the object is no longer counted", func(g *v1alpha1.Gate) bool { return g.Status.Targets.Total == 0 })
	})

	t.Run("a label decides whether an object matches", func(t *testing.T) {
		w := newWorld(t)
		g := w.ClosedGate("production", all("tier", "critical"))
		app := w.NewKustomization("apps", nil)
		w.soonStatus(g, "the gate is reconciled", func(g *v1alpha1.Gate) bool { return g.Status.Targets != nil })
		w.ExpectUntouched(app)
		app.SetLabels(map[string]string{"tier": "critical"})
		w.Git(app)
		w.soonHeld(app, g)
		app.SetLabels(nil)
		w.Git(app)
		w.soonFree(app)
	})

	t.Run("a resumed object is held again", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		w.soonHeld(app, g)
		for range 3 {
			w.Resume(app)
			w.soonHeld(app, g)
		}
	})

	t.Run("an object that Git applies with suspend false is held again", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		w.soonHeld(app, g)
		w.Git(app, false)
		w.soonHeld(app, g)
	})

	t.Run("a foreign object that is resumed is held", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		w.Suspend(app)
		g := w.ClosedGate("production", named("apps"))
		w.soonStatus(g, "the object is foreign", func(g *v1alpha1.Gate) bool { return g.Status.Targets != nil && g.Status.Targets.SuspendedByOthers == 1 })
		w.Resume(app)
		w.soonHeld(app, g)
	})

	t.Run("a foreign object that no longer matches is no longer counted", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", map[string]string{"tier": "critical"})
		w.Suspend(app)
		g := w.ClosedGate("production", all("tier", "critical"))
		w.soonStatus(g, "the object is foreign", func(g *v1alpha1.Gate) bool { return g.Status.Targets != nil && g.Status.Targets.SuspendedByOthers == 1 })
		app.SetLabels(nil)
		w.Git(app)
		w.soonStatus(g, "the object is no longer counted", func(g *v1alpha1.Gate) bool { return g.Status.Targets.Total == 0 })
		w.Expect(app, userSuspended)
	})

	t.Run("requests open and close, and a short window ends by itself", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.Gate("production", v1alpha1.GateSpec{Default: "closed", Window: duration(4 * time.Second), Targets: []v1alpha1.TargetReference{named("apps")}})
		w.soonHeld(app, g)
		w.Open(g, time.Now())
		w.soonFree(app)
		w.soonHeld(app, g)
		w.soonStatus(g, "the status is that of a closed gate", func(g *v1alpha1.Gate) bool { return g.Status.NextTransition == nil })
	})

	t.Run("a gate that is deleted releases", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		w.soonHeld(app, g)
		w.Must(cluster.Client.Delete(w.Context(), g))
		w.soonFree(app)
		soon(t, "the gate is gone", func() bool {
			return client.IgnoreNotFound(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g)) == nil
		})
	})

	t.Run("an object that names a gate which does not exist is released", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := &v1alpha1.Gate{}
		g.Namespace, g.Name = w.Namespace, "gone"
		w.Must(hold(w.Context(), app, g))
		w.soonFree(app)
	})

	t.Run("an object names its gates, which come, open and go", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := &v1alpha1.Gate{}
		g.Namespace, g.Name = w.Namespace, "production"
		refused := func(reason string) {
			soon(t, "the object is refused with "+reason, func() bool {
				return w.Suspended(app) && strings.HasPrefix(w.Suspension(app).Approved, "False "+reason)
			})
		}
		w.name(app, "production")
		refused("GateNotFound")
		w.Resume(app)
		refused("GateNotFound")
		g = w.ClosedGate("production")
		refused("GateClosed")
		w.Open(g, time.Now())
		w.soonFree(app)
		w.Must(cluster.Client.Delete(w.Context(), g))
		refused("GateNotFound")
		w.name(app, "production", "No Gate")
		soon(t, "the object names what is not a gate", func() bool { return w.Suspension(app).HeldBy == w.Namespace+"/*" })
		w.name(app)
		w.soonFree(app)
	})

	t.Run("a hold whose annotation is removed is released without its gate", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", nil)
		g := w.ClosedGate("production", named("apps"))
		w.soonHeld(app, g)
		w.Edit(g, func() { g.Spec.Suspend = true })
		w.PatchAsFlux(app, `{"metadata":{"annotations":{"`+v1alpha1.HeldByAnnotation+`":null}}}`)
		w.Must(cluster.Client.Delete(w.Context(), g))
		w.soonFree(app)
	})

	t.Run("a certificate is activated once cert-manager reports it", func(t *testing.T) {
		w := newWorld(t)
		web := w.activating("web")
		w.Edit(&web.Unstructured, func() { web.SetAnnotations(nil) })
		w.Gate("go-live", v1alpha1.GateSpec{
			Default: "opened", Interval: v1alpha1.Duration{Duration: time.Hour}, Targets: []v1alpha1.TargetReference{certificateRef("web")},
		})
		w.soonStatus(w.ReadGate("go-live"), "the gate is reconciled", func(g *v1alpha1.Gate) bool { return g.Status.Targets != nil && g.Status.Targets.Total == 1 })
		w.Edit(&web.Unstructured, func() { web.SetAnnotations(map[string]string{v1alpha1.ActivateIntoAnnotation: "web-tls"}) })
		soon(t, "the annotation is seen", func() bool { return strings.HasPrefix(w.activated(web), "False NotIssued") })
		w.stage(web, w.keyPair(-1000*day, 10000*day))
		w.Must(cluster.Client.Status().Patch(w.Context(), &web.Unstructured, client.RawPatch(types.MergePatchType, []byte(`{"status":{"notAfter":"2099-01-01T00:00:00Z"}}`))))
		soon(t, "the certificate is in use", func() bool {
			return w.secret("web-tls") != nil && strings.HasPrefix(w.activated(web), "True Activated")
		})
	})

	t.Run("the cache keeps only what a hold needs", func(t *testing.T) {
		w := newWorld(t)
		app := w.NewKustomization("apps", map[string]string{"tier": "critical"})
		g := w.ClosedGate("production", named("apps"))
		w.soonHeld(app, g)
		adapter, err := target.For("", "Kustomization")
		w.Must(err)
		var cached *target.Object
		soon(t, "the cache has seen the hold and the condition", func() bool {
			found, err := r.Targets.Select(w.Context(), adapter, w.Namespace, ptr.To(named("apps")))
			w.Must(err)
			cached = found[0]
			return len(cached.GetConditions()) > 0 && adapter.Observe(cached, verdict.Us) == target.Held
		})
		equal(t, keysOf(cached.Object), []string{"apiVersion", "kind", "metadata", "spec", "status"})
		equal(t, keysOf(cached.Object["spec"]), []string{"suspend"})
		equal(t, keysOf(cached.Object["status"]), []string{"conditions", "observedGeneration"})
		if fields := cached.GetManagedFields(); len(fields) != 1 || fields[0].Manager != v1alpha1.FieldManager || fields[0].Subresource != "" {
			t.Errorf("managed fields %v", fields)
		}
		held, err := r.Targets.HeldBy(w.Context(), key(g))
		w.Must(err)
		if len(held) != 1 || held[0].GetName() != "apps" {
			t.Errorf("held by the gate: %v", held)
		}
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

// hold holds a target as the controller does, in the name of Gates.
func hold(ctx context.Context, obj *target.Object, gates ...*v1alpha1.Gate) error {
	config := inGit(obj.GetNamespace(), obj.GetName(), nil)
	config.SetAnnotations(map[string]string{v1alpha1.HeldByAnnotation: target.FormatHeldBy(keys(gates))})
	config.Object["spec"] = map[string]any{"suspend": true}
	return cluster.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&config.Unstructured),
		client.FieldOwner(v1alpha1.FieldManager), client.ForceOwnership)
}
