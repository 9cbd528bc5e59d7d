package controllers_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/controllers"
	"github.com/fluxcd/gating-controller/internal/target"
	"github.com/fluxcd/gating-controller/internal/verdict"
)

// Only the clock shows that a transition is due, because a delay of hours does not end when the clock is set or while the machine is
// suspended.
func TestClockIsSet(t *testing.T) {
	w := newWorld(t)
	w.startManagerByItsClock()
	t.Run("a certificate of a missing gate", func(t *testing.T) { // no Gate reconciles it
		www := w.certificate("www", nil)
		w.issue(www, start.Add(-200*day), expiry)
		w.name(www, "missing")
		held := func() bool {
			policy, _, _ := unstructured.NestedString(w.Reload(www).Object, "spec", "renewal", "policy")
			return policy == "Disabled"
		}
		for range 5 { // the clock may be set before the event of the last write
			w.FakeClock.SetTime(start)
			soon(t, "the certificate is held", held)
			w.FakeClock.SetTime(margin)
			soon(t, "the certificate is released", func() bool { return !held() })
		}
	})
	t.Run("a gate and an exception", func(t *testing.T) { w.gateAndExceptionFollowTheClock(t) })
}

func (w *world) gateAndExceptionFollowTheClock(t *testing.T) {
	t.Helper()
	w.In(0)
	app := w.NewKustomization("apps", nil)
	g := w.Gate("daily", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: *duration(day), Targets: []v1alpha1.TargetReference{all()},
		OpenPeriods: []v1alpha1.Period{dated("later", hours(1), hours(2))},
	})
	w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Suspend: true}) // so that the Gate does not enqueue the exception
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

// With --watch-all-namespaces=false, reads of other namespaces from the cache return an error.
func TestUnwatchedNamespaces(t *testing.T) {
	w := newWorld(t)
	other := w.NewNamespace()
	there := inGit(other, "apps", nil)
	w.Git(there)
	startManager(t, cluster, func(r *controllers.Gating) { r.Namespaces = map[string]ctrlcache.Config{w.Namespace: {}} })

	// An object that refers to a Gate in another namespace is held.
	qa := w.GateIn(other, "qa", v1alpha1.GateSpec{Default: v1alpha1.StateOpened})
	app, www := w.NewKustomization("apps", nil), w.certificate("www", nil)
	for _, obj := range []*target.Object{app, www} {
		w.name(obj, key(qa))
		soon(t, obj.GetKind()+" is held", func() bool { return strings.HasPrefix(w.Suspension(obj).Approved, "False AccessDenied") })
		w.name(obj)
		soon(t, obj.GetKind()+" is free", func() bool { return w.Suspension(obj).HeldBy == "" })
	}

	// A reference to another namespace does not prevent the Gate from holding other targets.
	far := all()
	far.Namespace = other
	g := w.ClosedGate("production", far, all())
	w.soonHeld(app, g)
	w.soonStatus(g, "the failure is in the status", func(g *v1alpha1.Gate) bool {
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
