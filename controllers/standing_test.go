package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// A release or a hold of many targets takes minutes. What the Gate is told meanwhile
// counts for all targets that are left.
func TestAGateThatIsToldOtherwiseDoesNotGoOn(t *testing.T) {
	t.Parallel()
	nothing := func(*world, *v1alpha1.Gate, time.Time) {}
	windows := []v1alpha1.Period{dated("day", hours(1), hours(3)), dated("later", hours(5), hours(6))}
	for name, tc := range map[string]struct {
		// closes means that it was closing when it was told, else opening.
		closes bool
		told   func(w *world, g *v1alpha1.Gate, now time.Time)
		// now is what the clock says then, a second later if zero.
		now time.Duration
		// held is what the targets are in the end. If it was at the contrary, it does not
		// go on with that. A Gate that is closing goes on otherwise.
		held bool
	}{
		"opening, a request to close": {false, func(w *world, g *v1alpha1.Gate, now time.Time) { w.close(g, now) }, 0, true},
		"opening, the window is over": {false, nothing, hours(3), true},
		"opening, the clock is set":   {false, nothing, -1, true},
		"opening, a spec that closes": {false, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Windows = windows[1:] })
		}, 0, true},
		"opening, another spec": {false, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Windows = windows[:1] })
		}, 0, false},
		"closing, a request to open": {true, func(w *world, g *v1alpha1.Gate, now time.Time) { w.open(g, now) }, 0, false},
		"closing, a window begins":   {true, nothing, hours(5), false},
		"closing, another spec": {true, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Windows = windows[:1] })
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var apps []*target.Object
			for i := range 3 * writesAtOnce {
				apps = append(apps, w.kustomization(fmt.Sprintf("app-%02d", i), nil))
			}
			g := w.gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Windows: windows, Targets: []v1alpha1.TargetReference{all()}})
			if tc.closes {
				w.in(hours(1))
			}
			w.reconcile(g)

			at := hours(1)
			if tc.closes {
				at = hours(3)
			}
			w.in(at)
			var once sync.Once
			w.writes.before = func(write string) error {
				if strings.HasPrefix(write, "apply Kustomization/") {
					once.Do(func() {
						now := cmp.Or(tc.now, at+time.Second)
						tc.told(w, g.DeepCopy(), start.Add(now))
						w.in(now)
					})
				}
				return nil
			}
			result := w.reconcile(g)
			w.writes.before = nil
			held := len(slices.DeleteFunc(slices.Clone(apps), func(app *target.Object) bool { return !w.suspended(app) }))
			done := held
			if !tc.closes {
				done = len(apps) - held
			}
			switch interrupted := tc.closes != tc.held; {
			case interrupted && (done == 0 || done > writesAtOnce || result.RequeueAfter > standingFor):
				t.Errorf("%d of %d are held, again in %s: %s", held, len(apps), result.RequeueAfter, opened(g))
			case !interrupted && tc.closes && done != len(apps):
				t.Errorf("%d of %d are held", held, len(apps))
			}
			w.reconcile(g)
			for _, app := range apps {
				if w.suspended(app) != tc.held {
					t.Errorf("%s is held: %t", app.GetName(), !tc.held)
				}
			}
		})
	}
}

func TestHowManyTargetsAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.WritesAtOnce = 3
	for i := range 12 {
		w.kustomization(fmt.Sprintf("app-%02d", i), nil)
	}
	g := w.closedGate("production", all())
	var mu sync.Mutex
	var atOnce, most int
	reached := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return most >= n
	}
	writing := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		atOnce += n
		most = max(most, atOnce)
	}
	w.writes.before = func(write string) error {
		if strings.HasPrefix(write, "apply Kustomization/") {
			writing(1)
			for deadline := time.Now().Add(10 * time.Second); !reached(3) && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond) // so that as many as there are come together
			}
		}
		return nil
	}
	w.writes.after = func(write string) error {
		if strings.HasPrefix(write, "apply Kustomization/") {
			writing(-1)
		}
		return nil
	}
	w.reconcile(g)
	if most != 3 {
		t.Errorf("%d were written at once", most)
	}
}

func TestTheAPIServerIsAskedForTheTimeOnceForEachOpening(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	asked := w.ahead(0)
	for i := range 2 * writesAtOnce {
		w.kustomization(fmt.Sprintf("app-%02d", i), nil)
	}
	g := w.closedGate("production", all())
	w.reconcile(g)
	w.edit(g, func(g *v1alpha1.Gate) { g.Spec.Default = v1alpha1.StateOpened })
	var writes atomic.Int64
	w.writes.before = func(string) error {
		w.in(time.Duration(writes.Add(1)) * 2 * standingFor)
		return nil
	}
	w.reconcile(g)
	if *asked != 1 || writes.Load() < 4*writesAtOnce {
		t.Errorf("asked %d times in %d writes: %s", *asked, writes.Load(), opened(g))
	}
}
