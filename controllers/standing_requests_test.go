package controllers

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/fluxcd/pkg/runtime/conditions"

	"github.com/fluxcd/gating-controller/api/v1alpha1"
	"github.com/fluxcd/gating-controller/internal/gate"
)

// Flux may remove the annotation of a request before all targets are done.
func TestWhatIsRequestedWhileTheTargetsAreBroughtToItIsNotLost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		opens, fails bool
	}{"closing": {}, "opening": {opens: true}, "closing, the first write fails": {fails: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.kustomizations(3 * writesAtOnce)
			g := w.Gate("production", v1alpha1.GateSpec{
				Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all()},
				Windows: []v1alpha1.Period{dated("first", hours(1), hours(2)), dated("second", hours(3), hours(4))},
			})
			began, ask, annotation, action := time.Duration(0), w.close, v1alpha1.CloseRequestedAtAnnotation, v1alpha1.RequestClose
			if tc.opens {
				began, ask, annotation, action = hours(1), w.open, v1alpha1.OpenRequestedAtAnnotation, v1alpha1.RequestOpen
				w.reconcile(g)
			}
			w.in(began)
			var mu sync.Mutex
			told, targets, failed := g.DeepCopy(), 0, false
			w.writes.before = func(write string) error {
				mu.Lock()
				defer mu.Unlock()
				if write == "patch-status Gate/production" && targets > 0 && tc.fails && !failed {
					failed = true
					return errBroken
				}
				if !strings.HasSuffix(write, "Gate/production") {
					targets++
					w.in(began + time.Duration(targets)*standingFor)
				}
				switch targets {
				case 2:
					ask(told, start.Add(began))
				case 4 * writesAtOnce:
					w.Annotate(told, annotation, "")
				}
				return nil
			}
			w.reconcile(g)
			w.writes.before = nil
			w.reconcile(g)
			if last := g.Status.LastRequest; last == nil || last.Action != action || !last.RequestedAt.Equal(&metav1.Time{Time: start.Add(began)}) {
				t.Errorf("the last request is %v", last)
			}
			if events := w.events.take("Gate/production " + v1alpha1.RequestAcceptedReason); len(events) != 1 || failed != tc.fails {
				t.Errorf("told %q, failed %t", events, failed)
			}
			if targets < 4*writesAtOnce {
				t.Errorf("%d writes", targets)
			}
		})
	}
}

// askedMeanwhile lets a Gate be asked to close at the second write to a target, and something
// happen just before its status is written after that, once.
func (w *world) askedMeanwhile(g *v1alpha1.Gate, then func(told *v1alpha1.Gate)) {
	var mu sync.Mutex
	told, targets := g.DeepCopy(), 0
	w.writes.before = func(write string) error {
		mu.Lock()
		defer mu.Unlock()
		if write == "patch-status Gate/"+g.Name && targets >= 2 && then != nil {
			then(told)
			then = nil
		}
		if strings.HasPrefix(write, "apply Kustomization/") {
			if targets++; targets == 2 {
				w.close(told, start)
			}
			w.in(time.Duration(targets) * standingFor)
		}
		return nil
	}
}

// Flux may do so between the look at it and the write.
func TestWhatIsRequestedIsNotLostToAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kustomizations(2 * writesAtOnce)
	g := w.ClosedGate("production", all())
	stripped := false
	w.askedMeanwhile(g, func(told *v1alpha1.Gate) {
		stripped = true
		w.Annotate(told, v1alpha1.CloseRequestedAtAnnotation, "")
	})
	w.reconcile(g)
	w.writes.heal()
	w.reconcile(g)
	if last := g.Status.LastRequest; !stripped || last == nil || last.Action != v1alpha1.RequestClose {
		t.Errorf("stripped %t, the last request is %v", stripped, last)
	}
	if events := w.events.take("Gate/production " + v1alpha1.RequestAcceptedReason); len(events) != 1 {
		t.Errorf("told %q", events)
	}
}

// A Gate of the same name may have taken its place meanwhile.
func TestWhatIsRequestedOfAGateIsNotAskedOfItsSuccessor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kustomizations(2 * writesAtOnce)
	g := w.ClosedGate("production", all())
	successor := &v1alpha1.Gate{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}, Spec: *g.Spec.DeepCopy()}
	w.askedMeanwhile(g, func(told *v1alpha1.Gate) {
		w.Must(cluster.Client.Delete(w.Context(), g.DeepCopy()))
		w.Must(cluster.Client.Patch(w.Context(), told, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
		w.Must(cluster.Client.Create(w.Context(), successor))
	})
	_, _ = w.try(g) // what is gone cannot be written
	w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g))
	if successor.UID == "" || g.UID != successor.UID || g.Status.LastRequest != nil || len(g.Status.HandledRequests) > 0 {
		t.Errorf("the successor %q has the status %+v", successor.UID, g.Status)
	}
}

// What a Gate does not govern any more is let go last, which may take minutes, too.
func TestWhatIsRequestedWhileTargetsLeaveIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	web := w.kustomization("web", nil)
	w.kustomizations(2 * writesAtOnce)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all()},
		Windows: []v1alpha1.Period{dated("day", hours(1), hours(3))},
	})
	w.reconcile(g)
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{named("web")} })
	w.in(hours(1))
	var mu sync.Mutex
	told, leave := g.DeepCopy(), 0
	w.writes.before = func(write string) error {
		mu.Lock()
		defer mu.Unlock()
		if !strings.HasPrefix(write, "apply Kustomization/") || strings.HasSuffix(write, "/web") {
			return nil
		}
		leave++
		w.in(hours(1) + time.Duration(leave)*standingFor)
		switch leave {
		case 2:
			w.close(told, start.Add(hours(1)))
		case 2*writesAtOnce - 2:
			w.Annotate(told, v1alpha1.CloseRequestedAtAnnotation, "")
		}
		return nil
	}
	w.reconcile(g)
	w.expectReleased(web, g)
	w.reconcile(g)
	w.expectHeld(web, g)
	if last := g.Status.LastRequest; last == nil || last.Action != v1alpha1.RequestClose {
		t.Errorf("the last request is %v", last)
	}
}

// A planned request begins in a pass that does not change the state, so that nothing is
// written before the targets. What is requested meanwhile comes on top of that, and others
// know at once when the Gate closes by it.
func TestWhatIsRequestedWhileAPlannedRequestBeginsIsNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kustomizations(2 * writesAtOnce)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Targets: []v1alpha1.TargetReference{all()},
		Windows: []v1alpha1.Period{dated("day", hours(1), hours(3))},
	})
	planned, closes := hours(2), hours(2.5)
	w.open(g, start.Add(planned))
	w.reconcile(g)
	w.in(hours(1))
	w.writes.before = failing("apply Kustomization")
	if _, err := w.try(g); err == nil {
		t.Fatal("nothing is left to be released")
	}
	w.events.take("")

	w.in(planned)
	var mu sync.Mutex
	told, targets, known, stripped := g.DeepCopy(), 0, false, false
	w.writes.before = func(write string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasSuffix(write, "Gate/production") {
			if targets >= 2 && !stripped {
				stripped = true
				w.Annotate(told, v1alpha1.CloseRequestedAtAnnotation, "")
			}
			return nil
		}
		targets++
		w.in(planned + time.Duration(targets)*standingFor)
		switch targets {
		case 2:
			w.close(told, start.Add(closes))
		case 2*writesAtOnce - 4:
			w.Must(cluster.Client.Get(w.Context(), client.ObjectKeyFromObject(told), told))
			known = gate.IsOpen(told, start.Add(closes-1)) && !gate.IsOpen(told, start.Add(closes))
		}
		return nil
	}
	w.reconcile(g)
	w.writes.heal()
	if !known || !stripped {
		t.Errorf("it is not known when it closes: %v", told.Status.NextTransition)
	}
	w.reconcile(g)
	w.in(closes)
	w.reconcile(g)
	if got := conditions.Get(g, v1alpha1.OpenedCondition); got.Reason != v1alpha1.CloseRequestedReason {
		t.Errorf("got %s %s", got.Status, got.Reason)
	}
	if events := w.events.take("Gate/production " + v1alpha1.RequestAcceptedReason); len(events) != 1 {
		t.Errorf("told %q", events)
	}
}

// The cache has still what was asked for before.
func TestWhatIsHandledIsNotHandledAgainByACacheThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.kustomizations(2 * writesAtOnce)
	g := w.Gate("production", v1alpha1.GateSpec{Default: v1alpha1.StateClosed})
	w.close(g, start.Add(hours(1)))
	w.reconcile(g)
	stale := g.DeepCopy()
	w.in(hours(1))
	w.reconcile(g)
	w.Edit(g, func() { g.Spec.Targets = []v1alpha1.TargetReference{all()} })
	stale.Spec, stale.Generation = g.Spec, g.Generation
	w.close(g, start.Add(hours(1.5)))
	w.in(hours(2))
	w.events.take("")
	w.Client = behind{w.Client, stale}
	var mu sync.Mutex
	targets := 0
	w.writes.before = func(write string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.HasPrefix(write, "apply Kustomization/") {
			targets++
			w.in(hours(2) + time.Duration(targets)*standingFor)
		}
		return nil
	}
	w.reconcile(g)
	if last := g.Status.LastRequest; last == nil || !last.RequestedAt.Equal(&metav1.Time{Time: start.Add(hours(1.5))}) {
		t.Errorf("the last request is %v", last)
	}
	for _, m := range g.Status.HandledRequests {
		if m.LastHandled != start.Add(hours(1.5)).Format(time.RFC3339) {
			t.Errorf("handled last: %s", m.LastHandled)
		}
	}
	if events := w.events.take("Gate/production Request"); len(events) != 1 {
		t.Errorf("told %q", events)
	}
}

// A decision is taken to stand for a moment before it is looked at again, but no opening goes
// on past the instant at which the Gate closes, also if that was asked for while it opened.
func TestAnOpeningStopsAtTheInstantThatIsAskedForMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	g := w.Gate("production", v1alpha1.GateSpec{
		Default: v1alpha1.StateClosed, Windows: []v1alpha1.Period{dated("day", hours(1), hours(3))},
	})
	w.in(hours(1))
	w.reconcile(g)
	s, closes := w.standing(g, &g.Status, v1alpha1.StateOpened), hours(2)
	w.close(g.DeepCopy(), start.Add(closes))
	for _, tc := range []struct {
		at    time.Duration
		holds bool
	}{{closes - standingFor/2, true}, {closes - 1, true}, {closes, false}} {
		w.in(tc.at)
		if s.holds(w.Context()) != tc.holds {
			t.Errorf("it stands %s before it closes: %t", closes-tc.at, !tc.holds)
		}
	}
}

// What is requested of a Gate that opens is looked at by two clocks as well, later if need be.
func TestWhatIsRequestedWhileNobodyKnowsTheTimeIsAskedForAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var unknown atomic.Bool
	w.ServerTime = func(context.Context) (time.Time, error) {
		if unknown.Load() {
			return time.Time{}, errBroken
		}
		return w.clock.Now(), nil
	}
	w.kustomizations(2 * writesAtOnce)
	g := w.ClosedGate("production", all())
	w.reconcile(g)
	w.Edit(g, func() { g.Spec.Default = v1alpha1.StateOpened })
	var writes atomic.Int64
	w.writes.before = func(write string) error {
		if strings.Contains(write, "Kustomization/") {
			n := writes.Add(1)
			w.in(time.Duration(n) * standingFor)
			if n == 1 {
				unknown.Store(true)
				w.open(g.DeepCopy(), start)
			}
		}
		return nil
	}
	w.reconcile(g)
	w.writes.before = nil
	if writes.Load() >= 4*writesAtOnce {
		t.Error("it was not looked at")
	}
	if _, err := w.try(g); err == nil || conditions.GetReason(g, meta.ReadyCondition) != v1alpha1.TimeUnknownReason {
		t.Errorf("got %v: %v", conditions.Get(g, meta.ReadyCondition), err)
	}
}
