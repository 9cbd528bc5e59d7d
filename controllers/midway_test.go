package controllers_test

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/summary"
	"github.com/fluxcd/gating-controller/internal/target"
)

// Holding or releasing thousands of targets may take minutes, during which a request or a transition can reverse the decision.
func TestNewRequestCancelsPendingWrites(t *testing.T) {
	t.Parallel()
	nothing := func(*world, *v1alpha1.Gate, time.Time) {}
	windows := []v1alpha1.Period{dated("day", hours(1), hours(3)), dated("later", hours(5), hours(6))}
	for name, tc := range map[string]struct {
		// closes is true if the Gate was closing before the change, false if it was opening.
		closes  bool
		emitted func(w *world, g *v1alpha1.Gate, now time.Time)
		// now is the time of the change, a second later if zero.
		now time.Duration
		// held is whether the targets are held in the end. If the Gate was doing the opposite, it stops that.
		held bool
	}{
		"opening, a request to close": {false, func(w *world, g *v1alpha1.Gate, now time.Time) { w.Close(g, now) }, 0, true},
		"opening, the window is over": {false, nothing, hours(3), true},
		"opening, a spec that closes": {false, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.Edit(g, func() { g.Spec.OpenPeriods = windows[1:] })
		}, 0, true},
		"opening, another spec": {false, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.Edit(g, func() { g.Spec.OpenPeriods = windows[:1] })
		}, 0, false},
		"closing, a request to open": {true, func(w *world, g *v1alpha1.Gate, now time.Time) { w.Open(g, now) }, 0, false},
		"closing, another spec": {true, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.Edit(g, func() { g.Spec.OpenPeriods = windows[:1] })
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			apps := w.NewKustomizations(8)
			g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, OpenPeriods: windows, Targets: []v1alpha1.TargetReference{all()}})
			at := hours(1)
			if tc.closes {
				at = hours(3)
				w.In(hours(1))
			}
			w.Reconcile(g)

			w.In(at)
			_, err := w.ReconcileGate(client.ObjectKeyFromObject(g))
			w.Must(err)
			var once sync.Once
			w.Writes.Before = func(write string) error {
				if strings.HasPrefix(write, "apply Kustomization/") {
					once.Do(func() {
						now := cmp.Or(tc.now, at+time.Second)
						w.In(now)
						tc.emitted(w, g.DeepCopy(), start.Add(now))
						_, err := w.ReconcileGate(client.ObjectKeyFromObject(g)) // the pass does not wait for targets
						w.Must(err)
					})
				}
				return nil
			}
			w.Must(w.ReconcileEnqueued())
			w.Writes.Before = nil
			held := len(slices.DeleteFunc(slices.Clone(apps), func(app *target.Object) bool { return !w.Suspended(app) }))
			if done := len(apps) - held; !tc.closes && tc.held && done > 1 {
				t.Errorf("%d of %d are released, although it closes since the first: %s", done, len(apps), opened(g))
			}
			if tc.closes && !tc.held && held > 1 {
				t.Errorf("%d of %d are held, although it opens since the first: %s", held, len(apps), opened(g))
			}
			w.Reconcile(g)
			for _, app := range apps {
				if w.Suspended(app) != tc.held {
					t.Errorf("%s is held: %t", app.GetName(), !tc.held)
				}
			}
		})
	}
}

// A Gate that is deleted and created again at once is another Gate.
func TestRecreatedGateInheritsNothing(t *testing.T) {
	t.Parallel()
	w, g, apps := pacedWorld(t)
	w.Open(g, start)
	w.Reconcile(g)
	w.expectHeldOf(apps, "bcd")
	before := summary.KeyFor(g)
	if waiting, _ := w.State.Slots.Counts(before.UID); waiting != 3 {
		t.Fatalf("%d wait", waiting)
	}
	successor := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}, Spec: *g.Spec.DeepCopy()}
	w.Edit(g, func() { g.Finalizers = nil })
	w.Must(cluster.Client.Delete(w.Context(), g))
	w.Must(cluster.Client.Create(w.Context(), successor))
	w.Reconcile(successor)
	w.expectHeldOf(apps, "abcd")
	if waiting, released := w.State.Slots.Counts(before.UID); waiting != 0 || released != 0 {
		t.Errorf("%d wait and %d were released for the one that is gone", waiting, released)
	}
	if sums := w.State.Summary.Sums(before); sums.Total != 0 {
		t.Errorf("the one that is gone has %+v", sums)
	}
	w.expectRelease(successor, "none, 4 held")
}
