package controllers_test

import (
	"strings"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/runtime/conditions"

	lockv1alpha1 "github.com/fluxcd/gating-controller/api/lock/v1alpha1"
	"github.com/fluxcd/gating-controller/api/v1alpha1"
)

// crashing returns a hook that fails all writes after the n-th one, as if the process had ended there.
func crashing(n int) func(string) error {
	return func(string) error {
		if n--; n < 0 {
			return errBroken
		}
		return nil
	}
}

// enough is more than the number of writes that any change takes.
const enough = 12

func TestCrashAfterAnyWriteIsRepaired(t *testing.T) {
	locks := func(locked bool, targets ...string) func(*v1alpha1.Gate) lockv1alpha1.GateLockSpec {
		return func(g *v1alpha1.Gate) lockv1alpha1.GateLockSpec {
			spec := lockv1alpha1.GateLockSpec{Gates: map[string]bool{key(g): locked}}
			for _, name := range targets {
				spec.Targets = map[string][]string{name: {key(g)}}
			}
			return spec
		}
	}
	for name, tc := range map[string]struct {
		change func(*world, *v1alpha1.Gate)
		held   bool
		lock   func(*v1alpha1.Gate) lockv1alpha1.GateLockSpec
	}{
		"closing":  {func(w *world, g *v1alpha1.Gate) { w.Close(g, w.In(hours(2))) }, true, locks(true, "Kustomization/apps")},
		"opening":  {func(w *world, g *v1alpha1.Gate) { w.Open(g, w.In(hours(2))) }, false, locks(false)},
		"deleting": {func(w *world, g *v1alpha1.Gate) { w.Must(cluster.Client.Delete(w.Context(), g)) }, false, func(*v1alpha1.Gate) (none lockv1alpha1.GateLockSpec) { return none }},
		"no longer named": {func(w *world, g *v1alpha1.Gate) {
			w.Edit(g, func() { g.Spec.Targets = nil })
		}, false, locks(true)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for n := range enough {
				w := locking(t)
				app := w.NewKustomization("apps", nil)
				g := w.ClosedGate("production", named("apps"))
				w.Reconcile(g)
				if tc.held {
					w.Open(g, w.In(hours(1)))
					w.Reconcile(g)
					w.ExpectReleased(app, g)
				}
				tc.change(w, g)
				w.Writes.Before = crashing(n)
				_, err := w.Try(g)
				// A target that is locked when it is released could stay held forever.
				if l := w.lock(w.Namespace); !tc.held && !w.Suspended(app) && len(l.Spec.Targets) > 0 {
					t.Error("released before it was unlocked")
				}
				w.Writes.Reset()
				if n%2 == 0 { // otherwise, only the writes fail
					w.restart()
				}
				w.Reconcile(g)
				if tc.held {
					w.ExpectHeld(app, g)
				} else {
					w.ExpectReleased(app, g)
				}
				w.expectLock(w.Namespace, tc.lock(g))
				if t.Failed() {
					t.Fatalf("after a crash at write %d: %v", n, err)
				}
				if err == nil {
					return // all writes were made
				}
			}
			t.Errorf("more than %d writes", enough)
		})
	}
}

// If the response is lost, the write was made nevertheless.
func TestLostResponseIsRepaired(t *testing.T) {
	for _, at := range []string{"apply Kustomization", "patch-status Kustomization", "patch-status Gate", "patch Gate"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			g := w.ClosedGate("production", named("apps"))
			lose := func() { w.Writes.After = once(at, func() error { return errBroken }) }
			lose()
			if _, err := w.Try(g); err == nil {
				t.Error("no error on closing")
			}
			w.Reconcile(g)
			w.ExpectHeld(app, g)

			w.Open(g, start)
			lose()
			_, err := w.Try(g)
			if err == nil && at != "patch Gate" {
				t.Error("no error on opening")
			}
			w.Reconcile(g)
			w.ExpectReleased(app, g)
			if !conditions.IsReady(g) {
				t.Errorf("conditions %v", g.Status.Conditions)
			}
		})
	}
}

func TestRequestIsInStatusBeforeTargetWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		spec    v1alpha1.GateSpec
		request func(*world, *v1alpha1.Gate)
		opened  bool
	}{
		"open":  {v1alpha1.GateSpec{Default: "closed"}, func(w *world, g *v1alpha1.Gate) { w.Open(g, start) }, true},
		"close": {v1alpha1.GateSpec{Default: "opened"}, func(w *world, g *v1alpha1.Gate) { w.Close(g, start) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			app := w.NewKustomization("apps", nil)
			tc.spec.Targets = []v1alpha1.TargetReference{named("apps")}
			g := w.Gate("production", tc.spec)
			w.Reconcile(g)
			tc.request(w, g)
			w.Events.Take("")
			w.Writes.Before = failing("patch-status Gate")
			if _, err := w.Try(g); err == nil || w.Suspended(app) != tc.opened {
				t.Errorf("the request was not stored: error %v, held is %t", err, w.Suspended(app))
			}
			expectNone(t, w.Events.Take("RequestAccepted"))

			seen := false
			w.Writes.Before = func(write string) error {
				if strings.Contains(write, "Kustomization") && !seen {
					seen = true
					latest := &v1alpha1.Gate{}
					w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), latest))
					if latest.Status.RequestedAt == nil || len(latest.Status.Requests) != 1 || conditions.IsTrue(latest, v1alpha1.OpenedCondition) != tc.opened {
						t.Errorf("before %s the status is %+v", write, latest.Status)
					}
				}
				if strings.Contains(write, "Kustomization") {
					return errBroken
				}
				return nil
			}
			if _, err := w.Try(g); err == nil || !seen {
				t.Fatalf("the target was not written: %v", err)
			}
			w.Writes.Reset()
			// Flux strips the annotation, and the request must survive that.
			g.Annotations = nil
			w.Annotate(g, v1alpha1.OpenRequestedAtAnnotation, "")
			w.Annotate(g, v1alpha1.CloseRequestedAtAnnotation, "")
			w.In(time.Minute)
			w.Reconcile(g)
			if w.Suspended(app) == tc.opened {
				t.Errorf("got %+v", w.Suspension(app))
			}
		})
	}
}

// The API server may take seconds for a write, during which the next transition may become due.
func TestTransitionDelayCountsFromWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Interval: *duration(hours(24)), Targets: []v1alpha1.TargetReference{named("apps")},
		OpenPeriods: []v1alpha1.Period{dated("now", hours(1), hours(1)+time.Second)},
	})
	w.Reconcile(g)
	w.In(hours(1) + 200*time.Millisecond)
	w.Writes.Before = func(string) error {
		w.In(hours(1) + 2*time.Second)
		return nil
	}
	result, err := w.Reconcilers().Gates.Reconcile(w.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(g)})
	w.Must(err)
	if result.RequeueAfter != time.Millisecond {
		t.Errorf("the Gate was due to close a second ago, and is reconciled after %s", result.RequeueAfter)
	}
}
