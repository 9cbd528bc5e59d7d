package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/target"
)

// A release or a hold of many targets may take minutes. What the Gate is told meanwhile
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
			w.Edit(g, func() { g.Spec.Windows = windows[1:] })
		}, 0, true},
		"opening, another spec": {false, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.Edit(g, func() { g.Spec.Windows = windows[:1] })
		}, 0, false},
		"closing, a request to open": {true, func(w *world, g *v1alpha1.Gate, now time.Time) { w.open(g, now) }, 0, false},
		"closing, a window begins":   {true, nothing, hours(5), false},
		"closing, another spec": {true, func(w *world, g *v1alpha1.Gate, _ time.Time) {
			w.Edit(g, func() { g.Spec.Windows = windows[:1] })
		}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			apps := w.kustomizations(3 * writesAtOnce)
			g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, Windows: windows, Targets: []v1alpha1.TargetReference{all()}})
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

// What was resumed counts until the Gate closes anew, also if the Gate was not open for
// long enough to get to the target, or could not write it.
func TestWhatAnOpeningDidNotGetToIsHeldAnew(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]bool{"not open for long": false, "it fails": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.WritesAtOnce = 2
			apps := w.kustomizations(v1alpha1.MaxFailures + 2)
			g := w.Gate("production", v1alpha1.GateSpec{
				Default: v1alpha1.StateClosed, ResumePolicy: v1alpha1.ResumePolicyRespect, Targets: []v1alpha1.TargetReference{all()},
				Windows: []v1alpha1.Period{dated("day", hours(1), hours(2))},
			})
			w.reconcile(g)
			for _, app := range apps {
				w.resume(app)
			}
			w.reconcile(g)
			equal(t, *g.Status.Targets, v1alpha1.TargetCounts{Total: int64(len(apps))})

			w.in(hours(1))
			w.writes.before = once("apply Kustomization", func() error {
				w.in(hours(2))
				return nil
			})
			if fails {
				w.writes.before = failing("apply Kustomization")
			}
			if _, err := w.try(g); (err != nil) != fails {
				t.Fatal(err)
			}
			if left := slices.ContainsFunc(apps, func(app *target.Object) bool { return w.look(app).heldBy != "" }); !left {
				t.Fatal("it was open for too long")
			}
			w.in(hours(2))
			w.writes.before = nil
			w.reconcile(g)
			for _, app := range apps {
				w.expectHeld(app, g)
			}
		})
	}
}

// What somebody resumes while a Gate closes counts, and goes on to count if the Gate does
// not open in between.
func TestWhatIsResumedOnceAGateHasClosedCounts(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"between hold and condition": "apply Kustomization", "afterwards": "patch-status Kustomization"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			app, other := w.kustomization("apps", nil), w.kustomization("other", nil)
			both := []v1alpha1.TargetReference{named("apps"), named("other")}
			g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed, ResumePolicy: v1alpha1.ResumePolicyRespect, Targets: both})
			w.writes.after = once(after+"/apps", func() error {
				w.resume(app)
				return nil
			})
			w.reconcile(g)
			w.reconcile(g)
			if w.suspended(app) {
				t.Error("it is held again")
			}
			// A mistake, which is put right while the other one is let go.
			w.Edit(g, func() { g.Spec.Targets = both[:1] })
			w.writes.before = once("apply Kustomization/other", func() error {
				other := g.DeepCopy()
				w.Edit(other, func() { other.Spec.Targets = both })
				return nil
			})
			w.reconcile(g)
			w.reconcile(g)
			w.expectHeld(other, g)
			if w.suspended(app) {
				t.Error("it is held again")
			}
		})
	}
}

// A mistake in Git, or in a command, is put right while a Gate lets go for good.
func TestWhatIsLetGoForGoodIsNoLongerOnceThatIsPutRight(t *testing.T) {
	t.Parallel()
	noTargets := func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.Targets = nil }) }
	for name, tc := range map[string]struct {
		mistake, right func(w *world, g *v1alpha1.Gate)
	}{
		"targets": {
			noTargets,
			func(w *world, g *v1alpha1.Gate) {
				w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{all()} })
			},
		},
		"suspended": {
			noTargets,
			func(w *world, g *v1alpha1.Gate) { w.Edit(g, func() { g.Spec.Suspend = true }) },
		},
		"deleted by force": {
			func(w *world, g *v1alpha1.Gate) {
				w.Edit(g, func() { g.Finalizers = nil })
				w.Must(cluster.Client.Delete(w.Context(), g))
			},
			func(w *world, g *v1alpha1.Gate) { w.ClosedGate(g.Name, all()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.WritesAtOnce = 2
			apps := w.kustomizations(8)
			g := w.ClosedGate("production", all())
			w.reconcile(g)
			tc.mistake(w, g)
			w.writes.before = once("apply Kustomization", func() error {
				tc.right(w, g.DeepCopy())
				return nil
			})
			_, err := w.try(g)
			w.Must(client.IgnoreNotFound(err))
			held := len(slices.DeleteFunc(slices.Clone(apps), func(app *target.Object) bool { return !w.suspended(app) }))
			if held == len(apps) || held < len(apps)-w.WritesAtOnce {
				t.Errorf("%d are held", held)
			}
		})
	}
}

// A Gate that is suspended while it closes leaves what it holds by then, which says so.
func TestWhatIsHeldByAGateThatIsSuspendedMeanwhileSaysSo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.WritesAtOnce = 2
	apps := w.kustomizations(8)
	g := w.ClosedGate("production", all())
	w.writes.before = once("apply Kustomization", func() error {
		other := g.DeepCopy()
		w.Edit(other, func() { other.Spec.Suspend = true })
		w.in(standingFor)
		return nil
	})
	w.reconcile(g)
	held := 0
	for _, app := range apps {
		if w.suspended(app) {
			w.expectHeld(app, g)
			held++
		}
	}
	if held == 0 || held == len(apps) {
		t.Errorf("%d are held", held)
	}
}

func TestHowManyTargetsAreWrittenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.WritesAtOnce = 3
	w.kustomizations(12)
	g := w.ClosedGate("production", all())
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

// The API server may not say what time it is. A Gate that is told to open while it closes
// goes on as long as nobody knows.
func TestAGateThatClosesDoesNotWaitForTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked, waited atomic.Int64
	w.ServerTime = func(ctx context.Context) (time.Time, error) {
		asked.Add(1)
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-time.After(5 * time.Second):
			waited.Add(1)
			return w.clock.Now(), nil
		}
	}
	apps := w.kustomizations(2 * writesAtOnce)
	g := w.ClosedGate("production", all())
	var writes atomic.Int64
	w.writes.before = func(string) error {
		n := writes.Add(1)
		w.in(time.Duration(n) * standingFor / 8)
		if n == 2 {
			w.open(g.DeepCopy(), start)
		}
		return nil
	}
	w.reconcile(g)
	for _, app := range apps {
		w.expectHeld(app, g)
	}
	if asked.Load() == 0 || waited.Load() > 0 {
		t.Errorf("asked %d times, waited %d times", asked.Load(), waited.Load())
	}
}

func TestTheAPIServerIsAskedForTheTimeOnceForEachOpening(t *testing.T) {
	t.Parallel()
	// What the Gate is told while it opens is asked for once more.
	for told, want := range map[bool]int{false: 1, true: 2} {
		t.Run(fmt.Sprintf("told %t", told), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			asked := w.ahead(0)
			w.kustomizations(2 * writesAtOnce)
			g := w.ClosedGate("production", all())
			w.reconcile(g)
			w.Edit(g, func() { g.Spec.Default = v1alpha1.StateOpened })
			var writes atomic.Int64
			w.writes.before = func(string) error {
				n := writes.Add(1)
				w.in(time.Duration(n) * 2 * standingFor)
				if told && n == 8 {
					w.open(g.DeepCopy(), start)
				}
				return nil
			}
			w.reconcile(g)
			if *asked != want || writes.Load() < 4*writesAtOnce {
				t.Errorf("asked %d times in %d writes: %s", *asked, writes.Load(), opened(g))
			}
		})
	}
}
